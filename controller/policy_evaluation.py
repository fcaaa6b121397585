"""Evaluates policies between deciding and committing.

A decision has a policy check for each element that a policy may reject. If a check has no result
yet, the loop does not commit any part of the request. A thread of the node evaluates the checks,
and then the request is decided again. Decisions are pure, so deciding twice is safe.

The policies check one request at a time, on an image with the changes of the previous request. A
policy that limits the whole cluster therefore also limits concurrent requests, unless it is slow.
All elements of a request are checked on the image before that request (KIP-201). If a policy is
slow, the next request starts without waiting for it.

The image for a check includes the changes of earlier requests that are not committed yet, so that
one multi can commit many requests. If the loop decides or commits one of them differently, the
policies check all later requests again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.policy import AlterTopicRequest, ClusterState, CreateTopicRequest
from cluster_model.image import MetadataImage
from cluster_model.records import Record
from controller.apis.base import Decided, Decision, Outcome
from controller.pending_request import PendingRequest
from controller.policy_check import ImageClusterState, PolicyCheck, key_of

_log = logging.getLogger(__name__)
TURN_S: Final = 0.25
AHEAD_MAX: Final = 512
_CHANGES: Final = (CreateTopicRequest, AlterTopicRequest)


class Policies(Protocol):
    """The policies of this node, evaluated in its threads."""

    async def evaluate(self, check: PolicyCheck, cluster: ClusterState) -> ApiError | None:
        """Return the policy's rejection, or None if the policy accepts. Never raises."""
        ...


class PolicyEvaluation:
    """The requests of one term that wait for policies, and those that policies have checked."""

    def __init__(
        self,
        policies: Policies | None,
        *,
        image: Callable[[], MetadataImage],
        decide: Callable[[PendingRequest, MetadataImage], Decision],
        submit: Callable[[PendingRequest], None],
        now_s: Callable[[], float],
    ) -> None:
        """`image` includes every decided request. `submit` queues a request to be decided again."""
        self._policies = policies
        self._image = image
        self._decide = decide
        self._submit = submit
        self._now_s = now_s
        self._line: deque[PendingRequest] = deque()
        self._turn: PendingRequest | None = None  # the request that is being checked
        self._waiting: dict[PendingRequest, None] = {}
        # Checked requests that the loop will decide next, in order, and the records expected then.
        self._expected: dict[PendingRequest, list[Record]] = {}
        self._base: MetadataImage | None = None
        self._proposed = MetadataImage()  # `_base` with all expected records
        self._redone = 0  # how often checked requests were not decided as expected
        self._ahead = AHEAD_MAX  # how many requests may be checked before the loop decides them
        self._tasks: set[asyncio.Task[None]] = set()
        self._checks_line = False

    @property
    def are_configured(self) -> bool:
        """False if no policy is configured."""
        return self._policies is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def judge(self, pending: PendingRequest, decision: Decision) -> Decision | None:
        """Return the decision with the policies' rejections.

        Returns None if a check has no result yet; the request is submitted again after the checks.
        """
        if self._policies is None:
            return decision
        elements: list[Decided] = []
        unevaluated = False
        for decided, check in _checks(pending, decision):
            if check is not None:
                known, rejection = pending.verdicts.get(key_of(check), (None, None))
                unevaluated = unevaluated or known != check
                if rejection is not None:
                    decided = _rejected(pending, decision, decided, rejection)
            elements.append(decided)
        if not unevaluated:
            return replace(decision, elements=elements)
        pending.asked_policies = True
        self._waiting[pending] = None
        self._line.append(pending)
        self._start(self._policies)
        return None

    def decided(self, pending: PendingRequest, records: list[Record]) -> None:
        """The loop has decided this request, and will commit these records."""
        if self._policies is None or pending not in self._expected:
            return
        if self._expected.pop(pending) != records:
            self.check_again(())
            return
        self._ahead = min(2 * self._ahead, AHEAD_MAX)
        self._start(self._policies)

    def check_again(self, requests: Iterable[PendingRequest]) -> None:
        """Forget the results for these requests and for all that were checked later.

        The policies saw changes that were not made. The next request is checked alone, and their
        number doubles with each expected decision: otherwise many checks could be repeated often.
        """
        if self._policies is None:
            return
        for pending in (*requests, *self._expected):
            pending.verdicts.clear()
        self._expected.clear()
        self._base = None
        self._redone += 1
        self._ahead = 1
        self._start(self._policies)

    def holds(self, pending: PendingRequest) -> bool:
        """True while a request waits for a policy, or for its turn."""
        return pending in self._waiting

    def drain(self) -> list[PendingRequest]:
        """Stop evaluating; return the waiting requests."""
        for task in self._tasks:
            task.cancel()
        self._line.clear()
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def _start(self, policies: Policies) -> None:
        if self._line and not self._checks_line:
            self._checks_line = True
            self._spawn(self._check_line(policies))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _check_line(self, policies: Policies) -> None:
        """Check the requests of the line one after another; do not wait for a slow policy."""
        while self._line and len(self._expected) < self._ahead:
            self._turn = self._line.popleft()
            await asyncio.wait((self._spawn(self._check(self._turn, policies)),), timeout=TURN_S)
            self._turn = None
        self._checks_line = False

    async def _check(self, pending: PendingRequest, policies: Policies) -> None:
        redone, image = self._redone, self._after_expected()
        elements: list[tuple[Decided, PolicyCheck | None]] = []
        try:
            elements = _checks(pending, self._decide(pending, image))
        except Exception:
            _log.debug("%s fails; the loop answers it", pending.request_id, exc_info=True)
        checks = {key_of(check): check for _, check in elements if check is not None}
        pending.verdicts.clear()
        await self._evaluate(pending, policies, checks.values(), image)
        if self._waiting.pop(pending, pending) is not None:
            return  # The term has ended.
        if self._turn is pending:  # A slow policy may be called on changes that were not made.
            if redone != self._redone:
                pending.verdicts.clear()
            elif len(pending.verdicts) == len(checks):
                self._expect(pending, elements)
        self._submit(pending)

    async def _evaluate(
        self,
        pending: PendingRequest,
        policies: Policies,
        checks: Iterable[PolicyCheck],
        image: MetadataImage,
    ) -> None:
        """Evaluate the checks in order. `image` does not include the request's changes."""
        accepted: list[CreateTopicRequest | AlterTopicRequest] = []
        for check in checks:
            if self._now_s() > pending.deadline_s:
                break  # The loop answers REQUEST_TIMED_OUT.
            given = check
            if isinstance(check, _CHANGES):
                given = replace(check, accepted_before=tuple(accepted))
            rejection = await policies.evaluate(given, ImageClusterState(image))
            pending.verdicts[key_of(check)] = (check, rejection)
            if rejection is None and isinstance(check, _CHANGES):
                accepted.append(check)

    def _after_expected(self) -> MetadataImage:
        """Return the loop's image with the records of the checked requests."""
        base = self._image()
        if base is not self._base:
            self._base = base
            self._proposed = base.replay(chain.from_iterable(self._expected.values()))
        return self._proposed

    def _expect(
        self, pending: PendingRequest, elements: Iterable[tuple[Decided, PolicyCheck | None]]
    ) -> None:
        """Remember the records that this request will commit, and add them to the image."""
        accepted = (
            decided
            for decided, check in elements
            if check is None or pending.verdicts[key_of(check)][1] is None
        )
        records = [record for decided in accepted for record in decided.records]
        self._proposed = self._after_expected().replay(records)
        self._expected[pending] = records


def _checks(
    pending: PendingRequest, decision: Decision
) -> list[tuple[Decided, PolicyCheck | None]]:
    """Return each element with its check; None if it has no check, or is committed."""
    built: dict[int, PolicyCheck] = {}  # Elements may share one check.
    elements: list[tuple[Decided, PolicyCheck | None]] = []
    for decided in decision.elements:
        build, check = decided.policy_check, None
        if build is not None and decided.element not in pending.outcomes:
            check = built.get(id(build)) or built.setdefault(id(build), build())
        elements.append((decided, check))
    return elements


def _rejected(
    pending: PendingRequest, decision: Decision, decided: Decided, rejection: ApiError
) -> Decided:
    """Return the element with its rejection, in the error code of the request's version."""
    error, text = rejection.error, rejection.message
    if error is ErrorCode.POLICY_VIOLATION:
        text = api_message(error, text)
        if decision.violation is not error:
            _log.info(
                "%s: a policy rejects %s, with error %s because version %d lacks "
                "POLICY_VIOLATION: %s",
                *(pending.request_id, decided.element, decision.violation.name),
                *(pending.header.api_version, text),
            )
            error, text = decision.violation, None
    return replace(decided, outcome=Outcome(error, text), records=(), following=(), mutations=None)
