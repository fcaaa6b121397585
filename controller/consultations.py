"""Policies are asked between deciding and committing, and nobody's request waits for another's.

A decision says what would happen, and beside each element what a policy may be asked about it
(`controller.policy_questions`). Where answers are missing nothing of the request is committed: it
leaves the round, the policy is asked in a thread of the node's, and the request is decided again
with the answers at hand. Decisions are pure, so deciding twice does no harm.

Requests are asked about one after another, each on the image that the one before it left: a limit
on the cluster holds although clients create at once. A policy that takes long loses that turn, so
that it holds up nobody but those who asked for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.policy import ClusterState
from cluster_model.image import MetadataImage
from cluster_model.records import Record
from controller.apis.base import Decided, Decision, Outcome
from controller.policy_questions import ImageClusterState, Question, QuestionKey, key_of
from controller.work import Work

_log = logging.getLogger(__name__)
TURN_S: Final = 0.25


class Policies(Protocol):
    """The policies of this node, asked in a thread of theirs."""

    async def ask(self, question: Question, cluster: ClusterState) -> ApiError | None:
        """Return None when nothing speaks against it, else the refusal. Never raises."""
        ...


class _Asked(NamedTuple):
    """One question to be asked, and what becomes of the image when it is allowed."""

    key: QuestionKey
    question: Question
    records: tuple[Record, ...]


class Consultations:
    """Requests that wait for a policy's word, in one term of office."""

    def __init__(
        self,
        policies: Policies | None,
        *,
        submit: Callable[[Work], None],
        now_s: Callable[[], float],
        skips_retries: bool = False,
    ) -> None:
        """`submit` has a request decided again; `skips_retries` is a seeded bug."""
        self._policies = policies
        self._submit = submit
        self._now_s = now_s
        self._skips_retries = skips_retries
        self._turn: Work | None = None
        self._line: deque[Work] = deque()
        self._waiting: dict[Work, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def are_held(self) -> bool:
        """False where no policy is configured: nothing is ever decided with one's word."""
        return self._policies is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def judge(self, work: Work, decision: Decision, image: MetadataImage) -> Decision | None:
        """Return the decision as the policy's answers make it; None: it is asked first."""
        if self._policies is None or (self._skips_retries and work.attempt > 1):
            return decision
        elements: list[Decided] = []
        unanswered: list[_Asked] = []
        built: dict[int, Question] = {}  # several elements may share one question
        for decided in decision.elements:
            make = decided.question
            if make is None or decided.element in work.outcomes:
                elements.append(decided)
                continue
            question = built.get(id(make))
            if question is None:
                question = built[id(make)] = make()
                known = work.verdicts.get(key_of(question))
                if known is None or known[0] != question:
                    unanswered.append(_Asked(key_of(question), question, decided.records))
            _, refusal = work.verdicts.get(key_of(question), (None, None))
            if refusal is not None:
                decided = _refused(work, decision, decided, refusal)
            elements.append(decided)
        if not unanswered:
            return replace(decision, elements=elements)
        self._wait(work, self._policies, unanswered, image)
        return None

    def _wait(
        self,
        work: Work,
        policies: Policies,
        unanswered: Sequence[_Asked],
        image: MetadataImage,
    ) -> None:
        self._waiting[work] = None
        if self._turn not in (None, work):
            self._line.append(work)
            return
        self._turn = work
        task = asyncio.create_task(self._consult(work, policies, unanswered, image))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asyncio.get_running_loop().call_later(TURN_S, self._lose_turn, work, task)

    async def _consult(
        self,
        work: Work,
        policies: Policies,
        unanswered: Sequence[_Asked],
        image: MetadataImage,
    ) -> None:
        """Ask one question after another; each sees what those before it will have done."""
        for key, question, records in unanswered:
            if self._now_s() > work.deadline_s:
                break  # Its broker has given up; the loop says so.
            refusal = await policies.ask(question, ImageClusterState(image))
            work.verdicts[key] = (question, refusal)
            if refusal is None:
                image = image.replay(records)
        if self._waiting.pop(work, work) is None:
            self._submit(work)

    def _lose_turn(self, work: Work, task: asyncio.Task[None]) -> None:
        if not task.done():
            self.leave(work)

    def holds(self, work: Work) -> bool:
        """True while a request waits for a policy, or for its turn to ask."""
        return work in self._waiting

    def leave(self, work: Work) -> None:
        """A request is through, or takes too long: the next one may ask."""
        if self._turn is not work:
            return
        self._turn = self._line.popleft() if self._line else None
        if self._turn is not None:
            del self._waiting[self._turn]
            self._submit(self._turn)

    def drain(self) -> list[Work]:
        """Office is over: return who waits, and ask no more."""
        for task in self._tasks:
            task.cancel()
        self._line.clear()
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting


def _refused(work: Work, decision: Decision, decided: Decided, refusal: ApiError) -> Decided:
    """Return the element as refused; a version that knows no violations is told another code."""
    error, text = refusal.error, refusal.message
    if error is ErrorCode.POLICY_VIOLATION:
        text = api_message(error, text)
        if decision.violation is not error:
            _log.info(
                "%s: %s is refused by policy, which version %d cannot say: %s",
                work.context.request_id,
                decided.element,
                work.context.api_version,
                text,
            )
            error, text = decision.violation, None
    return replace(decided, outcome=Outcome(error, text), records=(), following=(), mutations=None)
