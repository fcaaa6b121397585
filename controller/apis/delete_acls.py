"""DeleteAcls, key 31, versions 0 to 3 (kafka-semantics 3.8). KIP-140, KIP-290.

Behaviour: every filter is answered with the rules it removed; a rule that two filters mean is
answered under the first. What goes from one pattern goes together. What was removed is gone from
the image when a request comes again after a failover, so an element's outcome keeps it.

Version notes:
    0: literal patterns only, in filters and answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import orjson

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from cluster_model.acl_requests import read_filter
from cluster_model.acls import (
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
    AclFilter,
    Entries,
)
from cluster_model.authorization import OPERATION_CODES
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.base import Decided, Decision, Outcome, RequestContext
from controller.apis.create_acls import pattern_element, refuse_whole

_WHOLE: Final = "request"


class _Removed(NamedTuple):
    """A rule that went, and the number of the filter that it is answered under."""

    filter_number: int
    pattern: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """See the module. Without an authorizer there are no ACLs."""

    has_authorizer: bool
    api_key: ClassVar[int] = 31

    def decide(
        self,
        context: RequestContext,
        request: DeleteAclsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a pattern from which something goes."""
        whole = refuse_whole(context, has_authorizer=self.has_authorizer)
        if whole is not None:
            return Decision([Decided(_WHOLE, whole)])
        filters = [read_filter(asked) for asked in request.filters]
        meant: dict[ResourcePattern, Entries] = {}
        for each in filters:
            meant.update(each.patterns(image.acls))
        decided = []
        for pattern, entries in meant.items():
            element = pattern_element(pattern)
            if element in settled:
                continue
            removed = _removed(pattern, entries, filters)
            if removed:
                gone = {each.entry for each in removed}
                record = AclRecord(pattern, tuple(e for e in entries if e not in gone))
                outcome = Outcome(ErrorCode.NONE, _encode(pattern, removed))
                decided.append(Decided(element, outcome, (record,)))
        return Decision(decided)

    def conflict(self, element: str) -> Outcome:
        """Somebody else wrote the pattern's rules at the same moment: nothing went."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: DeleteAclsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        whole = outcomes.get(_WHOLE)
        if whole is not None:
            return self.refuse(request, context.api_version, whole.error, whole.message)
        results = [DeleteAclsFilterResult(ErrorCode.NONE, None, []) for _ in request.filters]
        for outcome in outcomes.values():
            for number, pattern, entry in _decode(outcome):
                results[number].matching_acls.append(_matching(pattern, entry))
        for outcome in outcomes.values():
            if not outcome.succeeded:
                # A pattern that was not written: which filters meant it is not known any more.
                for result in results:
                    result.error_code = outcome.error
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=results)

    def refuse(
        self, request: DeleteAclsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _removed(
    pattern: ResourcePattern, entries: Entries, filters: list[AclFilter]
) -> list[_Removed]:
    """Each rule under the first filter that means it."""
    concerned = [(number, f) for number, f in enumerate(filters) if f.covers(pattern)]
    removed = []
    for entry in entries:
        number = next((number for number, f in concerned if f.takes(entry)), None)
        if number is not None:
            removed.append(_Removed(number, pattern, entry))
    return removed


def _encode(pattern: ResourcePattern, removed: list[_Removed]) -> str:
    rows = [(each.filter_number, *each.entry) for each in removed]
    return orjson.dumps((tuple(pattern), rows)).decode()


def _decode(outcome: Outcome) -> list[_Removed]:
    if not outcome.succeeded or outcome.message is None:
        return []
    pattern, rows = orjson.loads(outcome.message)
    return [
        _Removed(number, ResourcePattern(*pattern), AccessControlEntry(*entry))
        for number, *entry in rows
    ]


def _matching(pattern: ResourcePattern, entry: AccessControlEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=RESOURCE_TYPE_CODES[pattern.resource_type],
        resource_name=pattern.name,
        pattern_type=PATTERN_TYPE_CODES[pattern.pattern_type],
        principal=entry.principal,
        host=entry.host,
        operation=OPERATION_CODES[entry.operation],
        permission_type=PERMISSION_CODES[entry.permission],
    )
