"""Runs a policy in threads, with a timeout; the policy may raise anything or never return.

A call that exceeds the timeout fails. Its thread keeps running, because threads cannot be stopped.
At most CALLS_MAX calls run at a time, not counting `close`. While that many run, every other call
fails immediately.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.policy import PolicyViolationException

_log = logging.getLogger(__name__)
CALLS_MAX: Final = 8
# A slow call delays the results of the earlier calls in its series, so a series is short.
SERIES_S: Final = 0.005
_CLOSE_MS: Final = 2_000

Call = Callable[[], None]
Done = Callable[[BaseException | None], object]


class PolicyRunner:
    """The threads of one policy. `name` is the policy's class, for messages."""

    def __init__(self, name: str, timeout_ms: int) -> None:
        self._name = name
        self._timeout_ms = timeout_ms
        self._idle: list[_Worker] = []
        self._busy = 0

    async def run(self, call: Call, timeout_ms: int | None = None) -> ApiError | None:
        """Return None if `call` returns, else the error. Never raises."""
        (error,) = await self.run_in_order([call], [], timeout_ms)
        return error

    async def run_in_order(
        self,
        calls: Sequence[Call],
        results: list[ApiError | None],
        timeout_ms: int | None = None,
    ) -> list[ApiError | None]:
        """Run calls one after another in one thread; return the error or None of each that started.

        If the policy has too many unfinished calls, or no thread can start, no call starts and the
        list has one error.

        Starts no further call after an error, or once SERIES_S have passed. Each result is also
        added to `results` when its call returns. Never raises.
        """
        if self._busy >= CALLS_MAX:
            return [
                self._failed(
                    f"the policy {self._name} has not returned from {self._busy} earlier calls"
                )
            ]

        started = 0

        def run_all() -> None:
            nonlocal started
            ends_s = time.monotonic() + SERIES_S
            for call in calls:
                started += 1
                results.append(self._result(_raised_by(call)))
                if results[-1] is not None or time.monotonic() > ends_s:
                    return

        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        timed_out = await self._call(run_all, limit_ms)
        ended = list(results)  # before `started` is read, because the thread may still run
        if timed_out is None or (ended and len(ended) == started):
            return ended
        return [*ended, timed_out]

    async def _call(self, call: Call, timeout_ms: int) -> ApiError | None:
        try:
            worker = self._idle.pop() if self._idle else _Worker(self._name)
        except RuntimeError as error:  # The operating system starts no more threads.
            return self._failed(f"the policy {self._name} has no thread ({error})")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def returned(raised: BaseException | None) -> None:
            self._busy -= 1
            self._idle.append(worker)
            if not ended.done():
                ended.set_result(raised)

        self._busy += 1
        worker.start_call(call, lambda raised: loop.call_soon_threadsafe(returned, raised))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return self._result(await asyncio.shield(ended))
        except TimeoutError:
            return self._failed(f"the policy {self._name} did not decide within {timeout_ms} ms")

    def _result(self, raised: BaseException | None) -> ApiError | None:
        if raised is None:
            return None
        if isinstance(raised, PolicyViolationException):
            return ApiError(ErrorCode.POLICY_VIOLATION, str(raised) or None)
        _log.error("the policy %s failed", self._name, exc_info=raised)
        return ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The policy {self._name} failed; see the log of the broker that called it.",
        )

    def _failed(self, problem: str) -> ApiError:
        _log.error(problem)
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Rejected: {problem}.")

    async def close(self, call: Call) -> None:
        """Close the policy, even while CALLS_MAX calls run, and end its idle threads."""
        error = await self._call(call, _CLOSE_MS)
        if error is not None:
            _log.warning("the policy %s was not closed: %s", self._name, error.message)
        for worker in self._idle:
            worker.end()
        self._idle.clear()


class _Worker:
    """A daemon thread that runs calls in sequence. A stuck one does not delay the node's exit."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Call, Done] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"policy {name}", daemon=True).start()

    def start_call(self, call: Call, done: Done) -> None:
        self._calls.put((call, done))

    def end(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (job := self._calls.get()) is not None:
            call, done = job
            raised = _raised_by(call)
            try:
                done(raised)
            except RuntimeError:
                return  # The node's loop is closed.


def _raised_by(call: Call) -> BaseException | None:
    try:
        call()
    except BaseException as anything:  # Also SystemExit: otherwise the call would get no result.
        return anything
    return None
