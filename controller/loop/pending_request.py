"""The state of one request in the controller, and how its elements are divided into multis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.acls.authorization import BindAuthorize
from cluster_model.acls.bindings import AclSet
from cluster_model.client import Client
from cluster_model.direct_writes import WRITTEN_BY_BROKERS
from cluster_model.records import AssignmentRecord, Record, topic_of
from controller.apis.base import AdminApi, Decided, Outcome, RandomSource, RequestContext, Wait
from controller.apis.policy_check import PolicyCheck, PolicyCheckKey
from controller.loop.mutation_quotas import Charges
from controller.store.outcomes import RequestOutcomes
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from envelope.messages import EnvelopeReply, RequestIdentity
from event_log.events import ExecutionStarted, RequestDecided

# The fence, the commit counter and the outcomes' znode precede the effects.
_EFFECTS_MAX = OPERATIONS_MAX - 3
# The size of one outcome in the outcomes' znode, without its texts.
_OUTCOME_BYTES = 148
# If a request has had this many conflicts with external writes, the conflicting element fails. An
# element of an API that is not in WRITTEN_BY_BROKERS fails at the first conflict.
_DECISIONS_MAX: Final = 20
NOT_CONTROLLER: Final = EnvelopeReply(int(ErrorCode.NOT_CONTROLLER), None, 0)
TOO_LARGE: Final = Outcome(ErrorCode.INVALID_REQUEST, "The request is too large for ZooKeeper.")


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
    body_sha256: str | None = None  # None if the body contains a secret
    denial: str | None = None  # with a quirk, the message of authorization errors
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


def execution_started(pending: PendingRequest, epoch: int, image_zxid: int) -> ExecutionStarted:
    """Return the event of a decision, with the client and the zxid of the decision's image."""
    client = pending.client
    return ExecutionStarted(
        request_id=pending.request_id,
        identity=pending.identity,
        epoch=epoch,
        image_zxid=image_zxid,
        api_key=pending.header.api_key,
        api_version=pending.header.api_version,
        client_id=client.client_id,
        principal=str(client.principal),
        token_authenticated=client.principal.token_authenticated,
        client_host=client.host,
        listener=client.listener_name,
        security_protocol=client.security_protocol,
        body_sha256=pending.body_sha256,
    )


def request_decided(
    pending: PendingRequest,
    elements: list[tuple[str, int]],
    *,
    epoch: int,
    zxid: int,
    answer_sha256: str | None,
    error: ErrorCode = ErrorCode.NONE,
) -> RequestDecided:
    """Return the event of a response."""
    return RequestDecided(
        request_id=pending.request_id,
        identity=pending.identity,
        api_key=pending.header.api_key,
        principal=str(pending.client.principal),
        epoch=epoch,
        image_zxid=pending.image_zxid,
        zxid=zxid,
        elements=elements,
        unchanged=sorted(pending.without_effect),
        error=int(error),
        validate_only=bool(getattr(pending.request, "validate_only", False)),
        answer_sha256=answer_sha256,
    )


class Entry(NamedTuple):
    """One element that has records. All its operations go into the same multi."""

    pending: PendingRequest
    decided: Decided
    operations: Sequence[bytes]


def fits_in_multi(operations: Sequence[bytes], decided: Decided) -> bool:
    """False for an element too large for a multi: ZooKeeper would close the connection."""
    size = sum(map(len, operations)) + _outcome_bytes(decided)
    return len(operations) <= _EFFECTS_MAX and size <= MULTI_BYTES_MAX


def split_into_multis(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Fill multis up to the store's limits, in order. Every entry must satisfy fits_in_multi()."""
    multi: list[Entry] = []
    operations = size = 0
    for entry in entries:
        more = len(entry.operations)
        bytes_more = sum(map(len, entry.operations)) + _outcome_bytes(entry.decided)
        if multi and (operations + more > _EFFECTS_MAX or size + bytes_more > MULTI_BYTES_MAX):
            yield multi
            multi, operations, size = [], 0, 0
        multi.append(entry)
        operations += more
        size += bytes_more
    if multi:
        yield multi


def _outcome_bytes(decided: Decided) -> int:
    outcome = decided.outcome
    return _OUTCOME_BYTES + len(orjson.dumps((decided.element, outcome.message, outcome.numbers)))


def outcomes_of(multi: Sequence[Entry]) -> list[RequestOutcomes]:
    """Group the elements of a multi by request."""
    grouped: dict[RequestIdentity, tuple[str, dict[str, Outcome]]] = {}
    for pending, decided, _ in multi:
        _, elements = grouped.setdefault(pending.identity, (pending.request_id, {}))
        elements[decided.element] = decided.outcome
    return [RequestOutcomes(identity, *each) for identity, each in grouped.items()]


def error_codes(
    outcomes: Mapping[str, Outcome], unfinished: frozenset[str]
) -> list[tuple[str, int]]:
    """Return each element and its error code in the response."""
    late = int(ErrorCode.REQUEST_TIMED_OUT)
    return [(e, late if e in unfinished else int(o.error)) for e, o in outcomes.items()]


def starts_reassignment(record: AssignmentRecord) -> bool:
    """True if the record adds or removes replicas."""
    return bool(record.adding or record.removing)


def topics_of(records: Iterable[Record]) -> set[str]:
    """Return the names of the topics that the records change."""
    return {name for record in records if (name := topic_of(record)) is not None}
