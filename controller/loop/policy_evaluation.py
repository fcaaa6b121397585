"""Evaluates policies between deciding and committing.

A decision has a policy check for each element that a policy may reject. If a check has no result
yet, the controller's loop commits no part of the request. A thread of the node evaluates the
checks, and then the request is decided again. Decisions are pure, so deciding twice is safe.

The policies check one request at a time, on an image with the changes of all requests before it.
So concurrent requests cannot together exceed a limit on the whole cluster, unless a policy is slow.
All elements of a request are checked on the same image, which has no changes of this request
(KIP-201). If a policy takes longer than `TURN_S`, the next request is checked without the changes
of the slow one.

The image for a check includes accepted changes that are not committed yet, so that one multi can
commit many requests. If the loop then decides one of these requests differently, or does not commit
it, the policies check all later requests again. The thread gets the checks of several requests as
one series. The image for a request assumes that the policies accept all requests before it in the
series. The thread ends the series at the first rejection, or after some milliseconds. A series has
at most twice as many checks as the previous one had results.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from typing import Any, Final, Protocol, TypeVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.policy import AlterTopicRequest, ClusterState, CreateTopicRequest
from cluster_model.image import MetadataImage
from cluster_model.records import Record
from controller.apis.base import Decided, Decision, Outcome
from controller.apis.policy_check import ImageClusterState, PolicyCheck, PolicyCheckKey, key_of
from controller.requests.pending_request import PendingRequest

_log = logging.getLogger(__name__)
TURN_S: Final = 0.25
AHEAD_MAX: Final = 512
_CHECKS_MAX: Final = 64  # in one series
_RETRY_S: Final = 1.0  # after an unexpected exception
_CHANGES: Final = (CreateTopicRequest, AlterTopicRequest)
PolicyCall = tuple[PolicyCheck, ClusterState]
Results = list[ApiError | None]
Result = TypeVar("Result")


class Policies(Protocol):
    """The policies of this node, evaluated in its threads."""

    async def evaluate(self, calls: Sequence[PolicyCall], results: Results) -> Results:
        """Make the calls in order; return each rejection, or None for an accepted check.

        Stops after a rejection, and after the first call that returns later than some milliseconds
        after the start. The remaining calls have no result. Each result is also added to `results`
        when its call returns. Never raises.
        """
        ...


@dataclass(slots=True)
class _Proposal:
    """A waiting request, decided on an image with the changes of the waiting requests before it."""

    pending: PendingRequest
    elements: Sequence[tuple[Decided, PolicyCheck | None]]
    checks: Mapping[PolicyCheckKey, PolicyCheck]
    image: MetadataImage  # before the request

    def calls(self) -> Iterator[PolicyCall]:
        """Yield the calls that have no result. Each assumes that those before it are accepted."""
        accepted: list[CreateTopicRequest | AlterTopicRequest] = []
        cluster = ImageClusterState(self.image)
        for key, check in self.checks.items():
            if key not in self.pending.verdicts:
                current = check
                if isinstance(check, _CHANGES):
                    current = replace(check, accepted_before=tuple(accepted))
                yield current, cluster
            if isinstance(check, _CHANGES) and not self._is_rejected(key):
                accepted.append(check)

    def take(self, results: deque[ApiError | None]) -> bool:
        """Take the next results. True if every check has its result."""
        for key, check in self.checks.items():
            if key not in self.pending.verdicts:
                if not results:
                    return False
                self.pending.verdicts[key] = (check, results.popleft())
        return True

    def records(self) -> list[Record]:
        """Return the records of the elements that are not rejected."""
        return [
            record
            for decided, check in self.elements
            if check is None or not self._is_rejected(key_of(check))
            for record in decided.records
        ]

    def _is_rejected(self, key: PolicyCheckKey) -> bool:
        return self.pending.verdicts.get(key, (None, None))[1] is not None


class PolicyEvaluation:
    """The requests of one term that wait for policies, and those that policies have checked."""

    def __init__(
        self,
        policies: Policies | None,
        *,
        image: Callable[[], MetadataImage],
        decide: Callable[[PendingRequest, MetadataImage], Awaitable[Decision]],
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
        self._waiting: dict[PendingRequest, None] = {}
        # Checked requests that the loop will decide next, in order, and the records that it is
        # expected to decide.
        self._expected: dict[PendingRequest, list[Record]] = {}
        self._base: MetadataImage | None = None
        self._proposed = MetadataImage()  # `_base` with all expected records
        self._redone = 0  # how often checked requests were not decided or committed as expected
        # The first request of the queue, if some of its checks have results.
        self._partial: _Proposal | None = None
        self._series_max = _CHECKS_MAX  # how many checks the next series has
        self._ahead = AHEAD_MAX  # how many requests may be checked before the loop decides them
        self._tasks: set[asyncio.Task[Any]] = set()
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
                known_check, rejection = pending.verdicts.get(key_of(check), (None, None))
                unevaluated = unevaluated or known_check != check
                if rejection is not None:
                    decided = _rejected(pending, decision, decided, rejection)
            elements.append(decided)
        if not unevaluated:
            return replace(decision, elements=elements)
        pending.asked_policies = True
        pending.verdicts.clear()
        self._waiting[pending] = None
        self._line.append(pending)
        self._start(self._policies)
        return None

    def decided(self, pending: PendingRequest, records: list[Record]) -> None:
        """Compare the records of the loop's decision with the expected ones."""
        if self._policies is None or pending not in self._expected:
            return
        if self._expected.pop(pending) != records:
            self.check_again(())
            return
        self._ahead = min(2 * self._ahead, AHEAD_MAX)
        self._start(self._policies)

    def check_again(self, requests: Iterable[PendingRequest]) -> None:
        """Forget the results for these requests and for all that were checked later.

        The policies saw changes that were not made. From now on only one request is checked ahead
        of the loop, so that after another mismatch only one request is checked again. After each
        decision that is as expected, twice as many requests may be checked ahead, up to
        `AHEAD_MAX`.
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

    def _spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _check_line(self, policies: Policies) -> None:
        """Check the queued requests one after another; do not wait for a slow policy."""
        try:
            await self._check_in_series(policies)
        except Exception:
            _log.exception("an unexpected error in the policy checks; they are tried again")
            asyncio.get_running_loop().call_later(_RETRY_S, self._start, policies)
        finally:
            self._checks_line = False

    async def _check_in_series(self, policies: Policies) -> None:
        while self._line and len(self._expected) < self._ahead:
            redone, series = self._redone, await self._next_series()
            every = chain.from_iterable(proposal.calls() for proposal in series)
            calls = list(islice(every, self._series_max))
            so_far: Results = []
            evaluation = self._spawn(policies.evaluate(calls, so_far))
            is_done = bool((await asyncio.wait((evaluation,), timeout=TURN_S))[0])
            results = evaluation.result() if is_done else list(so_far)
            # Requests after the last result were decided in vain, so the next series is limited.
            self._series_max = min(2 * max(len(results), 1), _CHECKS_MAX)
            checked = _with_all_results(series, results)
            rest = series[len(checked)] if len(checked) < len(series) else None
            slow, self._partial = (None, rest) if is_done else (rest, None)
            if redone != self._redone:  # The policies saw changes that were not made.
                for proposal in series:
                    if proposal is not slow:
                        proposal.pending.verdicts.clear()
            elif checked:
                self._expect(checked)
            if slow is not None:  # `slow` has taken the last of `results`.
                self._line.remove(slow.pending)
                self._spawn(self._finish(slow, policies, evaluation, len(results)))

    async def _next_series(self) -> list[_Proposal]:
        """Decide the next queued requests, as if the policies accepted all of them."""
        image = self._after_expected()
        series: list[_Proposal] = []
        checks = 0
        for pending in tuple(self._line):
            if checks >= self._series_max or len(self._expected) + len(series) >= self._ahead:
                break
            if series:
                image = _replayed(image, [series[-1].records()])
            series.append(await self._propose(pending, image))
            checks += len(series[-1].checks)
        return series

    async def _propose(self, pending: PendingRequest, image: MetadataImage) -> _Proposal:
        partial, elements = self._partial, list[tuple[Decided, PolicyCheck | None]]()
        if self._now_s() <= pending.deadline_s:  # Otherwise the loop answers REQUEST_TIMED_OUT.
            if partial is not None and partial.pending is pending and partial.image is image:
                return partial
            try:
                elements = _checks(pending, await self._decide(pending, image))
            except Exception:
                _log.debug("%s fails; the loop answers it", pending.request_id, exc_info=True)
        checks = {key_of(check): check for _, check in elements if check is not None}
        return _Proposal(pending, elements, checks, image)

    def _expect(self, checked: Sequence[_Proposal]) -> None:
        """Let the loop decide these requests, and add their records to the image."""
        image = self._after_expected()
        records = {proposal.pending: proposal.records() for proposal in checked}
        self._expected |= records
        self._proposed = _replayed(image, list(records.values()))
        for pending in records:
            self._line.popleft()
            del self._waiting[pending]
            self._submit(pending)

    async def _finish(
        self, slow: _Proposal, policies: Policies, evaluation: asyncio.Task[Results], taken: int
    ) -> None:
        """Wait for the policy, then evaluate the remaining checks of this request.

        `taken` is the number of results that this request and those before it have taken.
        """
        results = deque((await evaluation)[taken:])
        while self._now_s() <= slow.pending.deadline_s and not slow.take(results):
            results.extend(await policies.evaluate([*islice(slow.calls(), _CHECKS_MAX)], []))
        if self._waiting.pop(slow.pending, slow) is None:  # The term has not ended.
            self._submit(slow.pending)

    def _after_expected(self) -> MetadataImage:
        """Return the loop's image with the records of the checked requests."""
        base = self._image()
        if base is not self._base:
            self._base = base
            self._proposed = _replayed(base, list(self._expected.values()))
        return self._proposed


def _replayed(image: MetadataImage, requests: Sequence[Sequence[Record]]) -> MetadataImage:
    """Return the image after the records of these requests.

    Leaves out a request that was decided on another image and changes a topic that has disappeared
    since. The loop will decide that request differently, and then the policies check all later
    requests again.
    """
    try:
        return image.replay(chain.from_iterable(requests))
    except LookupError:
        if len(requests) == 1:
            return image
    for records in requests:
        image = _replayed(image, [records])
    return image


def _with_all_results(series: Iterable[_Proposal], results: Results) -> list[_Proposal]:
    """Distribute the results; return the requests whose checks all have one."""
    left = deque(results)
    return list(takewhile(lambda proposal: proposal.take(left), series))


def _checks(
    pending: PendingRequest, decision: Decision
) -> list[tuple[Decided, PolicyCheck | None]]:
    """Return each element with its check, or with None if it has no check or is committed."""
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
    """Return the element as rejected; a version without POLICY_VIOLATION gets another error."""
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
