"""One request on its way through the controller: what it asks, what has become of it so far."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.acls import AclSet
from cluster_model.authorization import BindAuthorize
from cluster_model.direct_writes import WRITTEN_BY_BROKERS
from cluster_model.records import AssignmentRecord, Record
from controller.apis.base import AdminApi, Decided, Outcome, RequestContext, Wait
from controller.mutation_quotas import Charges
from controller.policy_questions import Question, QuestionKey
from controller.store.outcomes import RequestOutcomes
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from envelope.messages import EnvelopeAnswer, RequestIdentity
from event_log.events import ExecutionStarted

# Fence, commit counter and the outcomes' znode come before the effects.
_EFFECTS_MAX = OPERATIONS_MAX - 3
# What an outcome adds to its znode, beside its texts.
_OUTCOME_BYTES = 160
# What brokers below the bridge release write too is decided anew so often before it is given up.
_MEETINGS_MAX: Final = 20
TOO_LARGE: Final = Outcome(ErrorCode.INVALID_REQUEST, "What is asked for does not fit ZooKeeper.")


@dataclass(slots=True, eq=False)
class Work:
    """A request in the loop. `outcomes` grows until every element has one."""

    identity: RequestIdentity
    context: RequestContext
    api: AdminApi
    request: Any
    correlation_id: int
    deadline_s: float
    answer: asyncio.Future[EnvelopeAnswer]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)  # decided in this round, not yet committed
    without_effect: set[str] = field(default_factory=set)  # decided in this round, nothing to write
    charges: Charges = field(default_factory=Charges)
    wait: Wait = field(default_factory=Wait)
    zxid: int = 0
    image_zxid: int = 0
    attempt: int = 1
    body_sha256: str | None = None  # of the request's bytes, where they hold no secret
    # What policies said, and what was drawn on the way to asking them.
    verdicts: dict[QuestionKey, tuple[Question, ApiError | None]] = field(default_factory=dict)
    draws: list[tuple[Any, Any]] = field(default_factory=list)
    decided_s: float = 0.0  # when it was decided last; 0: it was not
    waits_s: float = 0.0  # since when its answer waits for the image; 0: it does not
    response: Any = None  # the message that was answered
    denial: str | None = None  # what a quirk tells who lacks the right
    meetings: int = 0  # how often it met somebody else's write

    def may_meet_again(self) -> bool:
        """Say whether an element that met somebody else's write is decided again, not refused."""
        self.meetings += 1
        return self.context.api_key in WRITTEN_BY_BROKERS and self.meetings < _MEETINGS_MAX

    def bind(self, bind_authorize: BindAuthorize, acls: AclSet, now_ms: int) -> None:
        """Say as of when the request is decided: its clock, and the rights of its asker."""
        authorize = bind_authorize(self.context.asker, acls)
        self.context = replace(self.context, now_ms=now_ms, authorize=authorize)


def execution_started(work: Work, epoch: int, image_zxid: int) -> ExecutionStarted:
    """Return the event: whom the controller decides for, and on which image."""
    context = work.context
    return ExecutionStarted(
        request_id=context.request_id,
        identity=work.identity,
        epoch=epoch,
        image_zxid=image_zxid,
        api_key=context.api_key,
        api_version=context.api_version,
        client_id=context.client_id,
        principal=str(context.principal),
        token_authenticated=context.principal.token_authenticated,
        client_host=context.client_host,
        listener=context.listener_name,
        security_protocol=context.security_protocol,
        body_sha256=work.body_sha256,
    )


class Entry(NamedTuple):
    """One element that has effects: its operations go into one multi, all or none."""

    work: Work
    decided: Decided
    operations: Sequence[bytes]


def fits_a_multi(operations: Sequence[bytes], decided: Decided) -> bool:
    """False for an element that no multi can hold: ZooKeeper hangs up on it, however often."""
    size = sum(map(len, operations)) + _outcome_bytes(decided)
    return len(operations) <= _EFFECTS_MAX and size <= MULTI_BYTES_MAX


def cut_into_multis(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Fill multis up to the store's limits, in order; an element is never cut.

    An element larger than a multi does not come here: see `fits_a_multi`.
    """
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
    texts = len(decided.element) + len(decided.outcome.message or "")
    return _OUTCOME_BYTES + 2 * texts  # Quotes and the like are written with a backslash.


def outcomes_of(multi: Sequence[Entry]) -> list[RequestOutcomes]:
    """Group the elements of a multi by their requests."""
    grouped: dict[RequestIdentity, RequestOutcomes] = {}
    for work, decided, _ in multi:
        entry = grouped.get(work.identity)
        if entry is None:
            entry = RequestOutcomes(work.identity, work.context.request_id, {})
            grouped[work.identity] = entry
        elements = entry.elements
        assert isinstance(elements, dict)
        elements[decided.element] = decided.outcome
    return list(grouped.values())


def told_codes(
    outcomes: Mapping[str, Outcome], unfinished: frozenset[str]
) -> list[tuple[str, int]]:
    """Return element and error code as the client is told them, for events."""
    late = int(ErrorCode.REQUEST_TIMED_OUT)
    return [(e, late if e in unfinished else int(o.error)) for e, o in outcomes.items()]


def starts_reassignment(record: AssignmentRecord) -> bool:
    """True for a topic's znode in which replicas are to come or to go."""
    return bool(record.adding or record.removing)


def topics_of(records: Iterable[Record]) -> set[str]:
    """Return the names of the topics whose metadata brokers must hear of."""
    names: set[str] = set()
    for record in records:
        name = getattr(record, "topic", None) or getattr(record, "name", None)
        if name is not None:
            names.add(name)
    return names
