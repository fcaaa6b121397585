"""The state of one request in the controller."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.acls.authorization import BindAuthorize
from cluster_model.acls.bindings import AclSet
from cluster_model.client import Client
from cluster_model.direct_writes import WRITTEN_BY_BROKERS
from controller.apis.base import AdminApi, Outcome, RandomSource, RequestContext, Wait
from controller.apis.policy_check import PolicyCheck, PolicyCheckKey
from envelope.messages import EnvelopeReply, RequestIdentity

# If a request has had this many conflicts with external writes, the conflicting element fails. An
# element of an API that is not in WRITTEN_BY_BROKERS fails at the first conflict.
_DECISIONS_MAX: Final = 20
NOT_CONTROLLER: Final = EnvelopeReply(int(ErrorCode.NOT_CONTROLLER), None, 0)


@dataclass(slots=True)
class Charges:
    """The charged elements of one request, and how long to throttle the client.

    An element that is decided again after a conflict is not charged again.
    """

    paid: set[str] = field(default_factory=set)
    throttle_ms: int = 0
    since_ms: int = 0

    def throttle_left_ms(self, now_ms: int) -> int:
        """Return the throttle time, minus the time that the request has already taken."""
        return max(0, self.throttle_ms - max(0, now_ms - self.since_ms))


@dataclass(slots=True, eq=False, kw_only=True)
class PendingRequest:
    """A request that has no reply yet. `outcomes` grows until every element has an outcome."""

    identity: RequestIdentity
    request_id: str
    header: RequestHeader
    client: Client
    api: AdminApi
    request: Any
    random: RandomSource
    deadline_s: float
    reply: asyncio.Future[EnvelopeReply]
    made_by_broker: bool = False  # the broker's own request, not a client's
    is_large: bool = False  # Its decision and its response are made in a thread.
    body_sha256: str | None = None  # None if the body contains a secret
    resolvable: frozenset[str] = frozenset()  # the host names in the request that resolve
    context: RequestContext = field(init=False)  # of the latest decision
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    # Elements of the latest decision: those not committed yet, and those without records.
    uncommitted: set[str] = field(default_factory=set)
    without_effect: set[str] = field(default_factory=set)
    charges: Charges = field(default_factory=Charges)
    wait: Wait = field(default_factory=Wait)
    zxid: int = 0
    image_zxid: int = 0
    asked_policies: bool = False  # whether policies were asked after an earlier decision
    # Results of policy checks, and the random draws of the decision that they checked.
    verdicts: dict[PolicyCheckKey, tuple[PolicyCheck, ApiError | None]] = field(
        default_factory=dict
    )
    draws: list[tuple[Any, Any]] = field(default_factory=list)
    decided_s: float = 0.0  # time of the latest decision; 0 before the first one
    waiting_since_s: float = 0.0  # when the wait for the image or brokers started; 0: no wait
    response: Any = None  # the response message
    conflicts: int = 0  # number of conflicts with external writes

    def may_retry_conflict(self) -> bool:
        """Count a conflict; True: decide the element again, False: reject it."""
        self.conflicts += 1
        return self.header.api_key in WRITTEN_BY_BROKERS and self.conflicts < _DECISIONS_MAX

    def new_context(
        self, bind_authorize: BindAuthorize, acls: AclSet, now_ms: int
    ) -> RequestContext:
        """Build the context of a decision on these ACLs at this time."""
        key, version, *_ = self.header
        self.context = RequestContext(
            request_id=self.request_id,
            api_key=key,
            api_version=version,
            client=self.client,
            authorize=bind_authorize(self.client.requester(key, version), acls),
            random=self.random,
            now_ms=now_ms,
            resolvable=self.resolvable,
            made_by_broker=self.made_by_broker,
        )
        return self.context
