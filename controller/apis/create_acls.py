"""CreateAcls, key 30, versions 0 to 3 (kafka-semantics 3.8). KIP-140, KIP-290.

Behaviour: what stands on one pattern is written together, and fails together; a rule that is
there already is a success and nothing is written. Names and hosts are not judged, as in Kafka.

Version notes:
    0: literal patterns only. 3: reads and writes like 2; all take resources of type USER.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.authorizer import ResourcePattern
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from cluster_model.acl_requests import (
    NO_AUTHORIZER,
    Creation,
    can_be_stored,
    means_any,
    read_creation,
)
from cluster_model.acls import AclBinding
from cluster_model.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext

_NOT_STORED = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """See the module. Without an authorizer there are no ACLs."""

    has_authorizer: bool
    api_key: ClassVar[int] = 30

    def decide(
        self,
        context: RequestContext,
        request: CreateAclsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a pattern, or a creation that is refused at once."""
        whole = refuse_whole(context, has_authorizer=self.has_authorizer)
        if whole is None and any(means_any(creation) for creation in request.creations):
            whole = _NOT_STORED
        decided: dict[str, Decided] = {}
        by_pattern: dict[ResourcePattern, list[AclBinding]] = {}
        for number, creation in enumerate(request.creations):
            read = read_creation(creation)
            element = _element(number, read)
            if whole is not None:
                decided[element] = Decided(element, whole)
            elif read.refusal is not None:
                outcome = Outcome(read.refusal.error, read.refusal.message)
                decided[element] = Decided(element, outcome)
            elif element not in settled and read.binding is not None:
                by_pattern.setdefault(read.binding.pattern, []).append(read.binding)
        for pattern, bindings in by_pattern.items():
            element = pattern_element(pattern)
            decided[element] = _added(element, pattern, bindings, image)
        return Decision(list(decided.values()))

    def conflict(self, element: str) -> Outcome:
        """Somebody else wrote the pattern's rules at the same moment."""
        return _NOT_STORED

    def answer(
        self,
        context: RequestContext,
        request: CreateAclsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> CreateAclsResponse:
        """See AdminApi.answer. A success has the empty text, as in Kafka."""
        results = []
        for number, creation in enumerate(request.creations):
            outcome = outcomes[_element(number, read_creation(creation))]
            text = "" if outcome.succeeded else outcome.message
            results.append(AclCreationResult(outcome.error, text))
        return CreateAclsResponse(throttle_time_ms=0, results=results)

    def refuse(
        self, request: CreateAclsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def refuse_whole(context: RequestContext, *, has_authorizer: bool) -> Outcome | None:
    """What both writing ACL APIs ask first."""
    if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        # Kafka's text is a dump of its objects.
        return Outcome(error, error.default_text)
    if not has_authorizer:
        return Outcome(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return None


def pattern_element(pattern: ResourcePattern) -> str:
    """Return the name of a pattern within its request, for example `TOPIC:LITERAL:orders`."""
    return ":".join(pattern)


def _element(number: int, read: Creation) -> str:
    if read.binding is None:
        return f"refused:{number}"
    return pattern_element(read.binding.pattern)


def _added(
    element: str, pattern: ResourcePattern, bindings: list[AclBinding], image: MetadataImage
) -> Decided:
    if not all(can_be_stored(binding) for binding in bindings):
        return Decided(element, _NOT_STORED)
    there = image.acls.entries(pattern)
    wanted = tuple(dict.fromkeys((*there, *(binding.entry for binding in bindings))))
    if wanted == there:
        return Decided(element, DONE)
    return Decided(element, DONE, (AclRecord(pattern, wanted),))
