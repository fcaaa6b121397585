"""DeleteAcls, key 31, versions 0 to 3 (docs/kafka/acls.md#acl-apis). KIP-140, KIP-290.

The response lists each removed ACL under the first filter that matches it. The ACLs of one pattern
are removed together. The outcome contains the removed ACLs, because the image no longer has them
when the request is resent after a failover.

Version notes:
    0: literal patterns only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import orjson

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from cluster_model.acls.bindings import AclFilter, Entries
from cluster_model.acls.codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)
from cluster_model.acls.requests import parse_filter
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.acl_changes import pattern_element, whole_rejection
from controller.apis.base import (
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
)


class _Removed(NamedTuple):
    """A removed ACL, and the number of the filter that lists it."""

    filter_number: int
    pattern: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True)
class DeleteAcls(AdminApi):
    """Decides DeleteAcls requests. Without an authorizer every request is rejected."""

    has_authorizer: bool
    api_key: ClassVar[ApiKey] = ApiKey.DELETE_ACLS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(settings.has_authorizer)

    def decide(
        self,
        context: RequestContext,
        request: DeleteAclsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a pattern with a matching ACL."""
        whole = whole_rejection(context, has_authorizer=self.has_authorizer)
        if whole is not None:
            return Decision.of_whole_request(whole)
        filters = [parse_filter(filter_) for filter_ in request.filters]
        matching: dict[ResourcePattern, Entries] = {}
        for filter_ in filters:
            matching.update(filter_.patterns(image.acls))
        decided = []
        for pattern, entries in matching.items():
            element = pattern_element(pattern)
            if element in committed:
                continue
            removed = _removed(pattern, entries, filters)
            if removed:
                entries_removed = {removal.entry for removal in removed}
                record = AclRecord(pattern, tuple(e for e in entries if e not in entries_removed))
                outcome = Outcome(ErrorCode.NONE, _encode(pattern, removed))
                decided.append(Decided(element, outcome, (record,)))
        return Decision(decided)

    def response(
        self, context: RequestContext, request: DeleteAclsRequest, results: Results
    ) -> Any:
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        rows = [DeleteAclsFilterResult(ErrorCode.NONE, None, []) for _ in request.filters]
        for outcome in results.outcomes.values():
            for number, pattern, entry in _decode(outcome):
                rows[number].matching_acls.append(_matching(pattern, entry))
        for outcome in results.outcomes.values():
            if not outcome.succeeded:
                # A failed outcome does not name its filters, so all filters report the error.
                for result in rows:
                    result.error_code = outcome.error
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=rows)


def _removed(
    pattern: ResourcePattern, entries: Entries, filters: list[AclFilter]
) -> list[_Removed]:
    """Return the matching ACLs, each with the first filter that matches it."""
    candidates = [(number, f) for number, f in enumerate(filters) if f.matches_pattern(pattern)]
    removed = []
    for entry in entries:
        number = next((number for number, f in candidates if f.matches_entry(entry)), None)
        if number is not None:
            removed.append(_Removed(number, pattern, entry))
    return removed


def _encode(pattern: ResourcePattern, removed: list[_Removed]) -> str:
    rows = [(removal.filter_number, *removal.entry) for removal in removed]
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
