"""The single writer: one task that decides, commits, replays, publishes and replies, in that order.

It corresponds to KRaft's QuorumController. A round takes the queued requests and decides them one
after another, each on an image with the changes of the previous ones. It then commits the records
in fenced multis, and replies. The loop ends when another controller may have been elected. Pending
requests then get NOT_CONTROLLER, and the next controller finds committed outcomes in ZooKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.slices import in_thread, sliced
from cluster_model.acls.authorization import without_logging
from cluster_model.image import MetadataImage
from cluster_model.records import (
    AssignmentRecord,
    ConfigRecord,
    DeletionMarkerRecord,
    PartitionRecord,
    Record,
    published_topics_of,
)
from cluster_model.znodes.layout import OutcomeZnode
from cluster_model.znodes.operations import Create, Operation
from controller.apis.base import Decision
from controller.loop.background_jobs import (
    Job,
    complete_reassignments,
    delete_topics,
    write_partition_states,
)
from controller.loop.delayed_responses import DelayedResponses
from controller.loop.multis import (
    TOO_LARGE,
    Entry,
    fits_in_multi,
    outcomes_of,
    split_into_multis,
)
from controller.loop.mutation_quotas import MutationQuotas
from controller.loop.policy_evaluation import Policies, PolicyEvaluation
from controller.loop.ports import LoopCallbacks, Store
from controller.loop.replayed_randomness import ReplayedRandom
from controller.requests.events import execution_started
from controller.requests.pending_request import NOT_CONTROLLER, PendingRequest
from controller.requests.responses import ResponseEncoder
from controller.store.outcomes import OutcomeIndex, encode_outcomes
from controller.store.plan import plan_multis, plan_operations
from controller.store.port import Committed, ContentConflictError, ControllerMovedError, Fence
from envelope.messages import EnvelopeReply
from event_log.events import ImageAdvanced
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# Limits the decisions of a round to some 20 ms, so that heartbeats and replies are not delayed.
REQUESTS_PER_ROUND: Final = 512
# Multis are sent without waiting for the previous reply. The limit bounds the memory.
MULTIS_IN_FLIGHT_MAX: Final = 16
_MANY: Final = 1_000  # records; replaying them takes some milliseconds
# Operations per multi of background writes.
OPERATIONS_PER_MULTI: Final = 480

Action = Callable[[], Awaitable[None]]


class ControllerLoop:
    """The loop of one term. Built after loading, run once."""

    def __init__(
        self,
        *,
        store: Store,
        fence: Fence,
        image: MetadataImage,
        outcomes: OutcomeIndex,
        callbacks: LoopCallbacks,
        responses: ResponseEncoder,
        log: EventLog,
        quotas: MutationQuotas,
        policies: Policies | None = None,
        waits_for_brokers: bool = False,
        stores_records: bool = False,
    ) -> None:
        """`policies`: None if none is configured. `waits_for_brokers`: see DelayedResponses.

        `stores_records`: see `Elections`.
        """
        self._store = store
        self._fence = fence
        self.image = image
        self.outcomes = outcomes
        self._callbacks = callbacks
        self._log = log
        self._quotas = quotas
        self._stores_records = stores_records
        self._queue: deque[PendingRequest] = deque()
        self._jobs: deque[Job] = deque()
        self._actions: deque[Action] = deque()
        self._wake = asyncio.Event()
        self._encoder = responses
        self._responses = DelayedResponses(
            responses,
            image=lambda: self.image,
            lease_holds=store.lease_holds,
            flush=log.flush,
            now_s=callbacks.now_s,
            waits_for_brokers=waits_for_brokers,
        )
        self._policies = PolicyEvaluation(
            policies,
            image=lambda: self._in_commit or self.image,
            decide=self._propose,
            submit=self.submit,
            now_s=callbacks.now_s,
        )
        self._zxid = image.zxid  # of the last commit
        self._in_commit: MetadataImage | None = None  # the image after the commits in progress
        self._in_round: list[PendingRequest] = []

    def submit(self, pending: PendingRequest) -> None:
        """Queue one request. Its `reply` is completed in any case."""
        self._queue.append(pending)
        self._wake.set()

    def start_job(self, job: Job) -> None:
        """Queue a background job: the records of one step are committed before the next step."""
        self._jobs.append(job)
        self._wake.set()

    def stop_job(self, job: Job) -> None:
        """Drop a job that a newer one replaces."""
        if job in self._jobs:
            self._jobs.remove(job)

    def schedule(self, action: Action, *, first: bool = False) -> None:
        """Queue an action to run between rounds. It may read ZooKeeper and replace the image.

        With `first` it runs before the next round, which then uses the replaced image.
        """
        if first:
            self._actions.appendleft(action)
        else:
            self._actions.append(action)
        self._wake.set()

    @property
    def queue_length(self) -> int:
        """Number of undecided requests."""
        return len(self._queue) + len(self._policies)

    async def replace_brokers(self, image: MetadataImage) -> None:
        """Replace the image by one with other live brokers, and publish it."""
        self.image = image
        await self._callbacks.publish(image, frozenset())
        self._responses.brokers_changed()

    async def replace_topics(self, image: MetadataImage, changed: frozenset[str]) -> None:
        """Replace the image by one with topics that others created, and publish these topics."""
        self.image = image
        await self._callbacks.publish(image, changed)
        self._responses.published(changed)

    async def replace_image(self, image: MetadataImage) -> None:
        """Replace the image by one that was read from ZooKeeper, and publish it."""
        changed = frozenset(self.image.topics) | frozenset(image.topics)
        self.image = image
        await self._callbacks.publish(image, changed)
        self._responses.published(changed)
        self._responses.brokers_changed()
        self._log.flush()  # Before the event loop sends the responses.

    def applied(self, broker_id: int, incarnation: str, zxid: int) -> None:
        """Record that a broker has applied `zxid`; see DelayedResponses."""
        self._responses.applied(broker_id, incarnation, zxid)

    async def run(self) -> None:
        """Serve until this controller is no longer active.

        Raises:
            ControllerMovedError, UnknownOutcomeError: another controller is or may be active, or
                the next one must choose other commit numbers.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue or self._jobs or self._actions:
                if self._actions:
                    await self._actions.popleft()()
                if self._queue:
                    await self._round()
                if self._jobs:
                    await self._step(self._jobs[0])
                await asyncio.sleep(0)

    def end(self) -> None:
        """Complete every pending request with NOT_CONTROLLER."""
        delayed = (*self._responses.drain(), *self._policies.drain())
        for pending in (*self._in_round, *self._queue, *delayed):
            if not pending.reply.done():
                pending.reply.set_result(NOT_CONTROLLER)
        self._queue.clear()
        self._jobs.clear()
        self._actions.clear()

    # --- Requests ------------------------------------------------------------------------

    async def _round(self) -> None:
        count = min(len(self._queue), REQUESTS_PER_ROUND)
        self._in_round = requests = [self._queue.popleft() for _ in range(count)]
        base = image = self.image
        entries: list[Entry] = []
        for pending in requests:
            image = await self._decide_or_fail(pending, image, entries)
        # A request whose policy checks end during the commit belongs to the next round.
        requests = [request for request in requests if not self._policies.holds(request)]
        multis = [multi async for multi in sliced(split_into_multis(entries))]
        self._in_commit = image
        done, conflict = await self._commit_multis(multis)
        self._in_commit = None
        records = [r for multi in multis[:done] for entry in multi for r in entry.decided.records]
        if conflict is None:
            self.image = replace(image, zxid=self._zxid) if multis else image
        else:
            replayed = await in_thread(len(records) > _MANY, base.replay, records)
            self.image = replace(replayed, zxid=self._zxid)
            self._handle_conflict(conflict, multis[done], requests)
        if records:
            self._start_jobs_for(records)
            await self._publish(frozenset(published_topics_of(records)))
        for pending in requests:
            self._finish(pending)
        self._in_round = []
        # The event loop sends the replies in its next turn. Before that, their events are written.
        self._log.flush()

    def _start_jobs_for(self, records: Sequence[Record]) -> None:
        """Start the jobs that complete deletions and reassignments."""
        marked = [r.topic for r in records if isinstance(r, DeletionMarkerRecord)]
        if marked:
            self._jobs.append(delete_topics(lambda: self.image, marked))
        started = [
            r.topic for r in records if isinstance(r, AssignmentRecord) and (r.adding or r.removing)
        ]
        if self._stores_records:
            # A leader may have added the last missing target replica to the ISR. The reassignment
            # can then be completed.
            changed = {r.topic for r in records if isinstance(r, PartitionRecord)}
            started += sorted(name for name in changed if self._is_reassigned(name))
        if started:
            job = complete_reassignments(
                lambda: self.image, started, stores_records=self._stores_records
            )
            self._jobs.append(job)

    def _is_reassigned(self, name: str) -> bool:
        topic = self.image.topics.get(name)
        return topic is not None and bool(topic.adding or topic.removing)

    async def _decide_or_fail(
        self, pending: PendingRequest, image: MetadataImage, entries: list[Entry]
    ) -> MetadataImage:
        """Decide one request; an exception fails this request only.

        If the exception ended the term, the broker would resend the request to the next controller,
        where the exception would end that term as well. A decision is pure, so it leaves nothing to
        undo.
        """
        decided_before = len(entries)
        try:
            image = await self._decide(pending, image, entries)
        except Exception:
            _log.exception("an unexpected error in the decision of %s", pending.request_id)
            del entries[decided_before:]
            pending.uncommitted.clear()
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            pending.reply.set_result(self._encoder.encode_error(pending, error))
        records = [r for entry in entries[decided_before:] for r in entry.decided.records]
        self._policies.decided(pending, records)
        return image

    async def _propose(self, pending: PendingRequest, image: MetadataImage) -> Decision:
        """Decide one request, before the policies and quotas."""
        pending.outcomes |= self.outcomes.lookup(pending.identity)
        now_ms = self._callbacks.now_ms()
        context = pending.new_context(self._callbacks.bind_authorize, image.acls, now_ms)
        if self._policies.are_configured:
            context = replace(context, random=ReplayedRandom(context.random, pending.draws))
        if pending.asked_policies:  # The first decision logged its authorizations.
            context = replace(context, authorize=without_logging(context.authorize))
        decide, outcomes = pending.api.decide, pending.outcomes
        return await in_thread(pending.is_large, decide, context, pending.request, image, outcomes)

    async def _decide(
        self, pending: PendingRequest, image: MetadataImage, entries: list[Entry]
    ) -> MetadataImage:
        """Decide one request, append its entries, and return the image that has its records."""
        pending.decided_s = self._callbacks.now_s()
        if pending.decided_s > pending.deadline_s:
            # The broker no longer waits for this request, so it must have no effect.
            late = EnvelopeReply(int(ErrorCode.REQUEST_TIMED_OUT), None, image.zxid)
            pending.reply.set_result(late)
            return image
        if self.outcomes.is_below_floor(pending.identity):
            # The broker has given up the request while this copy waited. An earlier copy may have
            # been committed, and its outcome pruned.
            over = EnvelopeReply(int(ErrorCode.INVALID_REQUEST), None, image.zxid)
            pending.reply.set_result(over)
            return image
        decision = self._policies.judge(pending, await self._propose(pending, image))
        if decision is None:
            return image  # The request is submitted again after the policy checks.
        pending.draws.clear()
        pending.image_zxid = self.image.zxid
        self._log.append(execution_started(pending, self._fence.epoch, image.zxid))
        pending.wait = decision.wait
        pending.without_effect.clear()
        records: list[Record] = []
        planned = image
        elements = self._quotas.charge(
            pending.context, decision.elements, image.mutation_rates, pending.charges
        )
        async for decided in sliced(elements):
            if decided.element in pending.outcomes:
                continue
            plan = plan_operations(decided.records, planned)
            operations = [self._store.encode(operation) for operation in plan]
            fits = fits_in_multi(operations, decided)
            if not decided.records or not fits:
                pending.outcomes[decided.element] = decided.outcome if fits else TOO_LARGE
                pending.without_effect.add(decided.element)
                continue
            if any(isinstance(record, ConfigRecord) for record in decided.records):
                # Later elements may share znodes with this one (quotas of a user and its clients).
                planned = planned.replay(decided.records)
            entries.append(Entry(pending, decided, operations))
            pending.uncommitted.add(decided.element)
            records += decided.records
        if not records:
            return image
        return await in_thread(pending.is_large, image.replay, records)

    async def _commit_multis(
        self, multis: Sequence[Sequence[Entry]]
    ) -> tuple[int, ContentConflictError | None]:
        """Commit in order. Return how many multis succeeded, and the conflict of the next one."""
        first = self._store.next_commit
        effects = (self._effects(multi, first + i) for i, multi in enumerate(multis))
        done = 0
        try:
            async for committed in self._commit(effects):
                self._committed(multis[done], committed)
                done += 1
        except ContentConflictError as conflict:
            if conflict.index == 0:
                path = OutcomeZnode.path(first + done)
                raise ControllerMovedError(f"another program has created {path}") from None
            return done, conflict
        return done, None

    async def _commit(self, multis: Iterable[Sequence[bytes]]) -> AsyncIterator[Committed]:
        """Commit in order, several multis in flight. Raises the first conflict."""
        remaining = iter(multis)
        while window := list(islice(remaining, MULTIS_IN_FLIGHT_MAX)):
            done, conflict = await self._store.commit_pipelined(self._fence, window)
            for committed in done:
                yield committed
            if conflict is not None:
                raise conflict

    def _effects(self, multi: Sequence[Entry], number: int) -> list[bytes]:
        """Return the effects of a multi. The first one creates the outcomes' znode."""
        content = encode_outcomes(self._fence.epoch, outcomes_of(multi))
        effects = [self._store.encode(Create(OutcomeZnode.path(number), content))]
        for entry in multi:
            effects += entry.operations
        return effects

    def _committed(self, multi: Sequence[Entry], committed: Committed) -> None:
        self._zxid = committed.zxid
        self.outcomes.add(committed.number, outcomes_of(multi))
        for pending, decided, _ in multi:
            pending.outcomes[decided.element] = decided.outcome
            pending.uncommitted.discard(decided.element)
            pending.zxid = committed.zxid
            if decided.following:
                self._jobs.append(write_partition_states(lambda: self.image, decided.following))

    def _handle_conflict(
        self,
        conflict: ContentConflictError,
        multi: Sequence[Entry],
        requests: Sequence[PendingRequest],
    ) -> None:
        """Find the element of `multi` that conflicts; fail it unless it may be decided again.

        All elements that are not committed are decided again, on the reloaded image.
        """
        index = conflict.index - 1  # the outcomes' znode is the first effect
        for pending, decided, operations in multi:
            if index < len(operations):
                _log.warning(
                    "%s of %s conflicts with an external write: %s",
                    *(decided.element, pending.identity, conflict),
                )
                if not pending.may_retry_conflict():
                    pending.outcomes[decided.element] = pending.api.conflict(decided.element)
                    pending.uncommitted.discard(decided.element)
                break
            index -= len(operations)
        for pending in requests:
            if not pending.reply.done():
                # Elements without records were decided on an image that was not committed, so they
                # are decided again.
                for element in pending.without_effect:
                    del pending.outcomes[element]
                pending.uncommitted |= pending.without_effect
        self._policies.check_again(requests)
        self._callbacks.reload()

    async def _publish(self, changed: frozenset[str]) -> None:
        await self._callbacks.publish(self.image, changed)
        self._log.append(
            ImageAdvanced(zxid=self.image.zxid, side="controller", epoch=self._fence.epoch)
        )
        self._responses.published(changed)

    def _finish(self, pending: PendingRequest) -> None:
        if pending.reply.done():
            return
        if pending.uncommitted:
            pending.uncommitted.clear()
            self._queue.append(pending)  # Decide again after a conflict.
            return
        self._responses.complete(pending)

    # --- Background work -----------------------------------------------------------------

    async def _step(self, job: Job) -> None:
        records = next(job, None)
        if records is None:
            self._jobs.remove(job)
        elif records:
            try:
                await self.commit_records(records)
            except ContentConflictError as conflict:
                _log.warning("a background write conflicts with an external write: %s", conflict)
                self._jobs.remove(job)
                self._callbacks.reload()
        elif len(self._jobs) > 1:
            self._jobs.rotate(-1)

    async def commit_records(self, records: Sequence[Record]) -> None:
        """Commit records of the controller itself, then publish them."""
        multis = list(plan_multis(records, self.image, OPERATIONS_PER_MULTI))
        committed = await self._commit_planned(multis)
        self._zxid = committed.zxid
        self.image = replace(self.image.replay(records), zxid=committed.zxid)
        await self._publish(frozenset(published_topics_of(records)))
        self._log.flush()

    async def commit_operations(self, operations: Sequence[Operation]) -> Committed:
        """Commit operations that do not change the image. Each of the multis is atomic.

        The brokers get the new zxid. Otherwise the zxid of a broker's metadata would be below the
        zxid of the last commit, and a new controller could not use the partition states that its
        broker knows.
        """
        step = OPERATIONS_PER_MULTI
        committed = await self._commit_planned(
            [operations[at : at + step] for at in range(0, len(operations), step)]
        )
        self._zxid = committed.zxid
        self.image = replace(self.image, zxid=committed.zxid)
        await self._publish(frozenset())
        return committed

    async def _commit_planned(self, multis: Iterable[Sequence[Operation]]) -> Committed:
        """Commit in order; return the last commit. Raises the first conflict."""
        last, done = Committed(0, self.image.zxid), 0
        planned = [list(multi) for multi in multis]
        effects = ([self._store.encode(operation) for operation in multi] for multi in planned)
        try:
            async for committed in self._commit(effects):
                last, done = committed, done + 1
        except ContentConflictError as conflict:
            path = planned[done][conflict.index].path
            raise ContentConflictError(conflict.index, conflict.code, path) from None
        return last
