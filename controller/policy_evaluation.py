"""Evaluates policies between deciding and committing.

A decision has a policy check for each element that a policy may reject. If a check has no result
yet, the loop does not commit any part of the request. A thread of the node evaluates the checks,
and then the request is decided again. Decisions are pure, so deciding twice is safe.

The policies check one request at a time, on an image with the changes of the previous request. A
policy that limits the whole cluster therefore also limits concurrent requests, unless it is slow.
All elements of a request are checked on the image before that request (KIP-201). If a policy is
slow, the next request starts without waiting for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.policy import AlterTopicRequest, ClusterState, CreateTopicRequest
from cluster_model.image import MetadataImage
from controller.apis.base import Decided, Decision, Outcome
from controller.pending_request import PendingRequest
from controller.policy_check import ImageClusterState, PolicyCheck, key_of

_log = logging.getLogger(__name__)
TURN_S: Final = 0.25
_CHANGES: Final = (CreateTopicRequest, AlterTopicRequest)


class Policies(Protocol):
    """The policies of this node, evaluated in its threads."""

    async def evaluate(self, check: PolicyCheck, cluster: ClusterState) -> ApiError | None:
        """Return the policy's rejection, or None if the policy accepts. Never raises."""
        ...


class PolicyEvaluation:
    """The requests of one term that wait for policies."""

    def __init__(
        self,
        policies: Policies | None,
        *,
        submit: Callable[[PendingRequest], None],
        now_s: Callable[[], float],
    ) -> None:
        """`submit` queues a request to be decided again."""
        self._policies = policies
        self._submit = submit
        self._now_s = now_s
        self._turn: PendingRequest | None = None
        self._line: deque[PendingRequest] = deque()
        self._waiting: dict[PendingRequest, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def are_configured(self) -> bool:
        """False if no policy is configured."""
        return self._policies is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def judge(
        self, pending: PendingRequest, decision: Decision, image: MetadataImage
    ) -> Decision | None:
        """Return the decision with the policies' rejections.

        Returns None if a check has no result yet; the request is submitted again after the checks.
        """
        if self._policies is None:
            return decision
        elements: list[Decided] = []
        unevaluated: list[PolicyCheck] = []
        built: dict[int, PolicyCheck] = {}  # Elements may share one check.
        for decided in decision.elements:
            build = decided.policy_check
            if build is None or decided.element in pending.outcomes:
                elements.append(decided)
                continue
            check = built.get(id(build))
            if check is None:
                check = built[id(build)] = build()
                known = pending.verdicts.get(key_of(check))
                if known is None or known[0] != check:
                    unevaluated.append(check)
            _, rejection = pending.verdicts.get(key_of(check), (None, None))
            if rejection is not None:
                decided = _rejected(pending, decision, decided, rejection)
            elements.append(decided)
        if not unevaluated:
            return replace(decision, elements=elements)
        self._wait(pending, self._policies, unevaluated, image)
        return None

    def _wait(
        self,
        pending: PendingRequest,
        policies: Policies,
        unevaluated: Sequence[PolicyCheck],
        image: MetadataImage,
    ) -> None:
        self._waiting[pending] = None
        if self._turn not in (None, pending):
            self._line.append(pending)
            return
        self._turn = pending
        task = asyncio.create_task(self._evaluate(pending, policies, unevaluated, image))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asyncio.get_running_loop().call_later(TURN_S, self._lose_turn, pending, task)

    async def _evaluate(
        self,
        pending: PendingRequest,
        policies: Policies,
        unevaluated: Sequence[PolicyCheck],
        image: MetadataImage,
    ) -> None:
        """Evaluate the checks in order. `image` does not include the request's changes."""
        keys = set(map(key_of, unevaluated))
        accepted = [
            check
            for key, (check, rejection) in pending.verdicts.items()
            if key not in keys and rejection is None and isinstance(check, _CHANGES)
        ]
        for check in unevaluated:
            if self._now_s() > pending.deadline_s:
                break  # The loop answers REQUEST_TIMED_OUT.
            given = check
            if isinstance(check, _CHANGES):
                given = replace(check, accepted_before=tuple(accepted))
            rejection = await policies.evaluate(given, ImageClusterState(image))
            pending.verdicts[key_of(check)] = (check, rejection)
            if rejection is None and isinstance(check, _CHANGES):
                accepted.append(check)
        if self._waiting.pop(pending, pending) is None:
            self._submit(pending)

    def _lose_turn(self, pending: PendingRequest, task: asyncio.Task[None]) -> None:
        if not task.done():
            self.release(pending)

    def holds(self, pending: PendingRequest) -> bool:
        """True while a request waits for a policy, or for its turn."""
        return pending in self._waiting

    def release(self, pending: PendingRequest) -> None:
        """End the turn of this request, if it has the turn. The next request then has the turn."""
        if self._turn is not pending:
            return
        self._turn = self._line.popleft() if self._line else None
        if self._turn is not None:
            del self._waiting[self._turn]
            self._submit(self._turn)

    def drain(self) -> list[PendingRequest]:
        """Stop evaluating; return the waiting requests."""
        for task in self._tasks:
            task.cancel()
        self._line.clear()
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting


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
