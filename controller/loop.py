"""The single writer: one task that decides, commits, replays, publishes and answers, in that order.

Requests that are queued go out together: they are decided one after another on a growing image,
their effects are cut into fenced multis, and every answer comes after its commit (design 5.4).
The loop ends when office is lost; whoever waits is told NOT_CONTROLLER and asks the next
controller, whose outcomes tell what was done (design 5.7).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.authorization import quietly
from cluster_model.image import MetadataImage
from cluster_model.records import AssignmentRecord, ConfigRecord, DeletionMarkerRecord, Record
from cluster_model.znode_operations import Create, Operation
from cluster_model.znodes import OutcomeZnode
from controller.answers import Answers
from controller.background import Job, complete_reassignments, delete_topics, follow
from controller.consultations import Consultations, Policies
from controller.draws import Redrawn
from controller.mutation_quotas import MutationQuotas
from controller.shell import Shell, Store
from controller.store.outcomes import OutcomeIndex, encode_outcomes
from controller.store.plan import plan_operations
from controller.store.port import Committed, ContentConflictError, Fence
from controller.work import (
    TOO_LARGE,
    Entry,
    Work,
    cut_into_multis,
    execution_started,
    fits_a_multi,
    outcomes_of,
    starts_reassignment,
    topics_of,
)
from envelope.messages import EnvelopeAnswer
from event_log.events import ImageAdvanced
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# One round's decisions stay below some 20 ms, so that heartbeats and answers go on between.
WORKS_PER_ROUND: Final = 512
# Multis under way at once: ZooKeeper works on one while the next is written; bounds the memory.
MULTIS_IN_FLIGHT_MAX: Final = 16
# Operations of one multi of the controller's own making.
OPERATIONS_PER_CHUNK: Final = 480


Chore = Callable[[], Awaitable[None]]


class ControllerLoop:
    """One term of office. Built when everything is loaded, run once."""

    def __init__(
        self,
        *,
        store: Store,
        fence: Fence,
        image: MetadataImage,
        outcomes: OutcomeIndex,
        shell: Shell,
        log: EventLog,
        quotas: MutationQuotas,
        policies: Policies | None = None,
        everywhere: bool = False,
        skips_policy_on_retry: bool = False,
    ) -> None:
        """`policies`: None where none is configured. `everywhere`: see Answers.

        `skips_policy_on_retry`: a seeded bug.
        """
        self._store = store
        self._fence = fence
        self.image = image
        self.outcomes = outcomes
        self._shell = shell
        self._log = log
        self._quotas = quotas
        self._queue: deque[Work] = deque()
        self._jobs: deque[Job] = deque()
        self._chores: deque[Chore] = deque()
        self._wake = asyncio.Event()
        self._answers = Answers(
            shell,
            image=lambda: self.image,
            lease_holds=store.lease_holds,
            flush=log.flush,
            everywhere=everywhere,
        )
        self._consultations = Consultations(
            policies, submit=self.submit, now_s=shell.now_s, skips_retries=skips_policy_on_retry
        )
        self._zxid = image.zxid  # of the last commit
        self._in_round: list[Work] = []

    def submit(self, work: Work) -> None:
        """Queue one request; its `answer` future is settled, whatever happens."""
        self._queue.append(work)
        self._wake.set()

    def start_job(self, job: Job) -> None:
        """Queue work of the controller's own."""
        self._jobs.append(job)
        self._wake.set()

    def stop_job(self, job: Job) -> None:
        """Drop a job that a newer one replaces."""
        if job in self._jobs:
            self._jobs.remove(job)

    def start_chore(self, chore: Chore) -> None:
        """Queue something that must not run beside a decision, reads of ZooKeeper included."""
        self._chores.append(chore)
        self._wake.set()

    @property
    def queue_length(self) -> int:
        """Requests not yet decided."""
        return len(self._queue) + len(self._consultations)

    def replace_brokers(self, image: MetadataImage) -> None:
        """Take over a changed set of live brokers and tell everybody."""
        before, self.image = self.image, image
        self._shell.publish(before, image, frozenset())
        self._answers.brokers_changed()

    def applied(self, broker_id: int, incarnation: str, zxid: int) -> None:
        """A broker has applied everything up to `zxid`."""
        self._answers.applied(broker_id, incarnation, zxid)

    async def run(self) -> None:
        """Work until office is lost.

        Raises:
            ControllerMovedError, UnknownOutcomeError: office is lost; see controller.rulings.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue or self._jobs or self._chores:
                if self._chores:  # First: what is decided again after a conflict needs its reload.
                    await self._chores.popleft()()
                if self._queue:
                    await self._round()
                if self._jobs:
                    await self._job_step(self._jobs[0])
                await asyncio.sleep(0)

    def end(self, answer: EnvelopeAnswer) -> None:
        """Office is over: everybody who waits gets `answer`."""
        held = self._consultations.drain()
        for work in (*self._in_round, *self._queue, *self._answers.drain(), *held):
            if not work.answer.done():
                work.answer.set_result(answer)
        self._queue.clear()
        self._jobs.clear()
        self._chores.clear()

    async def _round(self) -> None:
        count = min(len(self._queue), WORKS_PER_ROUND)
        self._in_round = works = [self._queue.popleft() for _ in range(count)]
        base = image = self.image
        entries: list[Entry] = []
        for work in works:
            image = self._contained(work, image, entries)
        multis = list(cut_into_multis(entries))
        done, conflict = await self._commit_multis(multis)
        records = [r for multi in multis[:done] for entry in multi for r in entry.decided.records]
        if conflict is None:
            self.image = replace(image, zxid=self._zxid)
        else:
            self.image = replace(base.replay(records), zxid=self._zxid)
            self._conflict(conflict, multis[done], works)
        if records:
            self._start_jobs_of(records)
            self._published(base, frozenset(topics_of(records)))
        for work in works:
            self._finish(work)
        self._in_round = []
        # The evidence reaches the operating system before the answers, which the loop's next
        # turn sends: a killed controller has told nobody what it has not written down.
        self._log.flush()

    def _start_jobs_of(self, records: Sequence[Record]) -> None:
        """What was accepted is brought to its end after the answer."""
        marked = [r.topic for r in records if isinstance(r, DeletionMarkerRecord)]
        if marked:
            self._jobs.append(delete_topics(lambda: self.image, marked))
        begun = [
            r.topic for r in records if isinstance(r, AssignmentRecord) and starts_reassignment(r)
        ]
        if begun:
            self._jobs.append(complete_reassignments(lambda: self.image, begun))

    def _contained(self, work: Work, image: MetadataImage, entries: list[Entry]) -> MetadataImage:
        """Decide one request; a fault in a decision is that request's alone.

        Decisions are pure: nothing has happened yet. Without this, one request that meets a bug
        would end the term of every controller that it is sent to, one after another.
        """
        decided_before = len(entries)
        try:
            return self._decide(work, image, entries)
        except Exception:
            _log.exception("a fault while deciding %s", work.context.request_id)
            del entries[decided_before:]
            work.undone.clear()
            refusal = self._shell.encode_refusal(work, ErrorCode.UNKNOWN_SERVER_ERROR)
            work.answer.set_result(refusal)
            return image

    def _decide(self, work: Work, image: MetadataImage, entries: list[Entry]) -> MetadataImage:
        work.decided_s = self._shell.now_s()
        if work.decided_s > work.deadline_s:
            # Its broker has given up: nothing may happen any more (property D8).
            work.answer.set_result(
                EnvelopeAnswer(int(ErrorCode.REQUEST_TIMED_OUT), None, image.zxid)
            )
            return image
        work.outcomes |= self.outcomes.lookup(work.identity)
        work.bind(self._shell.bind_authorize, image.acls, self._shell.now_ms())
        context = work.context
        if self._consultations.are_held:
            context = replace(context, random=Redrawn(context.random, work.draws))
        if work.verdicts:  # Decided before, to know what a policy is asked: its rights are told.
            context = replace(context, authorize=quietly(context.authorize))
        decision = work.api.decide(context, work.request, image, work.outcomes)
        judged = self._consultations.judge(work, decision, image)
        if judged is None:
            return image  # A policy is asked; the request comes again.
        decision = judged
        work.draws.clear()
        work.image_zxid = self.image.zxid
        self._log.append(execution_started(work, self._fence.epoch, image.zxid))
        work.wait = decision.wait
        work.without_effect.clear()
        records: list[Record] = []
        planned = image
        rates = image.mutation_rates
        for decided in self._quotas.charge(work.context, decision.elements, rates, work.charges):
            if decided.element in work.outcomes:
                continue
            planned_operations = plan_operations(decided.records, planned)
            operations = [self._store.encode(operation) for operation in planned_operations]
            fits = fits_a_multi(operations, decided)
            if not decided.records or not fits:
                work.outcomes[decided.element] = decided.outcome if fits else TOO_LARGE
                work.without_effect.add(decided.element)
                continue
            if any(isinstance(record, ConfigRecord) for record in decided.records):
                # Elements of one request may share znodes: the quotas of a user and its clients.
                planned = planned.replay(decided.records)
            entries.append(Entry(work, decided, operations))
            work.undone.add(decided.element)
            records += decided.records
        return image.replay(records) if records else image

    async def _commit_multis(
        self, multis: Sequence[Sequence[Entry]]
    ) -> tuple[int, ContentConflictError | None]:
        """Commit in order, several under way at once; return how many were, and what stopped it."""
        done = 0
        for start in range(0, len(multis), MULTIS_IN_FLIGHT_MAX):
            window = multis[start : start + MULTIS_IN_FLIGHT_MAX]
            first = self._store.next_commit
            effects = [self._effects(multi, first + i) for i, multi in enumerate(window)]
            committed, conflict = await self._store.commit_in_turn(self._fence, effects)
            for multi, each in zip(window, committed, strict=False):
                self._settle(multi, each)
            done += len(committed)
            if conflict is not None:
                return done, conflict
        return done, None

    def _effects(self, multi: Sequence[Entry], number: int) -> list[bytes]:
        """The outcomes' znode, then what makes each element true."""
        content = encode_outcomes(self._fence.epoch, outcomes_of(multi))
        effects = [self._store.encode(Create(OutcomeZnode.path(number), content))]
        for entry in multi:
            effects += entry.operations
        return effects

    def _settle(self, multi: Sequence[Entry], committed: Committed) -> None:
        self._zxid = committed.zxid
        self.outcomes.add(committed.number, committed.zxid, outcomes_of(multi))
        for work, decided, _ in multi:
            work.outcomes[decided.element] = decided.outcome
            work.undone.discard(decided.element)
            work.zxid = committed.zxid
            if decided.following:
                self._jobs.append(follow(lambda: self.image, decided.following))

    def _conflict(
        self, conflict: ContentConflictError, multi: Sequence[Entry], works: Sequence[Work]
    ) -> None:
        """One element met something the image did not know; the others are decided again."""
        index = conflict.index - 1  # the outcomes' znode is the first effect
        for work, decided, operations in multi:
            if index < len(operations):
                _log.warning(
                    "%s of %s met a foreign write: %s", decided.element, work.identity, conflict
                )
                if not work.may_meet_again():
                    work.outcomes[decided.element] = work.api.conflict(decided.element)
                    work.undone.discard(decided.element)
                break
            index -= len(operations)
        for work in works:
            if not work.answer.done():
                # Decided on an image that did not come true, so perhaps untrue: decided again.
                for element in work.without_effect:
                    del work.outcomes[element]
                work.undone |= work.without_effect
        self._shell.reload()

    def _published(self, before: MetadataImage, changed: frozenset[str]) -> None:
        self._shell.publish(before, self.image, changed)
        self._log.append(
            ImageAdvanced(zxid=self.image.zxid, side="controller", epoch=self._fence.epoch)
        )
        self._answers.published(changed)

    def _finish(self, work: Work) -> None:
        if self._consultations.holds(work):
            return
        self._consultations.leave(work)
        if work.answer.done():
            return
        if work.undone:
            work.undone.clear()
            self._queue.append(work)  # Undone by somebody else's conflict: decided again.
            return
        self._answers.finish(work)

    async def _job_step(self, job: Job) -> None:
        records = next(job, None)
        if records is None:
            self._jobs.remove(job)
        elif records:
            try:
                await self.commit_records(records)
            except ContentConflictError as conflict:
                _log.warning("the controller's own write met a foreign one: %s", conflict)
                self._jobs.remove(job)
                self._shell.reload()
        elif len(self._jobs) > 1:
            self._jobs.rotate(-1)

    async def commit_records(self, records: Sequence[Record]) -> None:
        """Write facts of the controller's own, then publish them."""
        operations = plan_operations(records, self.image)
        committed = await self.commit_operations(operations)
        self._zxid = committed.zxid
        before, self.image = self.image, replace(self.image.replay(records), zxid=committed.zxid)
        self._published(before, frozenset(topics_of(records)))
        self._log.flush()

    async def commit_operations(self, operations: Sequence[Operation]) -> Committed:
        """Write operations in as few fenced multis as they need; not atomic beyond one."""
        encoded = [self._store.encode(operation) for operation in operations]
        committed = Committed(0, self.image.zxid)
        for start in range(0, len(encoded), OPERATIONS_PER_CHUNK):
            chunk = encoded[start : start + OPERATIONS_PER_CHUNK]
            committed = await self._store.commit(self._fence, chunk)
        return committed
