"""The event loop of a blocking client, which runs in one thread at a time.

A single call runs the loop in the caller's own thread: no other thread has to be woken, neither to
send the request nor to return the result. While one caller runs the loop, other callers only wait.
In every other case the client's I/O thread runs the loop: when calls are left after the caller's
own call has ended, for calls that return a future, and while the client is idle (it then closes
idle connections).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from bridgehead.admin.driver import Driver
from bridgehead.admin.errors import InvalidCallError
from bridgehead.admin.requests import Plan, closed
from bridgehead.admin.results import Try

_IDLE_S: Final = 1.0  # after at most twice this time without a call, the I/O thread runs the loop


class SharedLoop:
    """Starts with the first call; ends with `close`, or with the program. Thread-safe."""

    def __init__(self, properties: Mapping[str, object], token: Callable[[], str] | None) -> None:
        """Raises AdminConfigError."""
        self._driver = Driver(properties, token)
        self._changed = threading.Condition(threading.Lock())  # guards the attributes below
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runner: int | None = None  # the thread that runs the loop
        self._runner_call: Future[Any] | None = None  # the loop stops after this call
        self._calls = 0  # calls without an outcome
        self._is_used = False
        self._closed = False
        self._is_closing = False  # the I/O thread closes the connections

    def run(self, plan: Plan[Any], timeout_ms: int | None, broker: int | None) -> Any:
        """Execute a call; return its result or raise its error."""
        may_run = not _runs_a_loop()
        if not may_run and self._runner == threading.get_ident():
            plan.close()
            raise InvalidCallError("A future's callback cannot wait for a call of the same client.")
        return self._submit(plan, timeout_ms, broker, may_run=may_run).result()

    def start(self, plan: Plan[Any], timeout_ms: int | None, broker: int | None) -> Future[Any]:
        """Begin a call; return its future. The future cannot be cancelled."""
        return self._submit(plan, timeout_ms, broker, may_run=False)

    def close(self) -> None:
        """End every call, close the sockets and stop the I/O thread. May be called twice."""
        with self._changed:
            self._closed = True
            thread, runner = self._thread, self._runner
            if self._loop is not None and runner is not None:
                self._loop.call_soon_threadsafe(self._stop_to_close)
            self._changed.notify()
        # A future's callback, which runs in the thread of the loop, may close the client.
        if thread is not None and runner != threading.get_ident():
            thread.join()

    def _submit(
        self, plan: Plan[Any], timeout_ms: int | None, broker: int | None, *, may_run: bool
    ) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def end(outcome: Try[Any]) -> None:
            self._end(future, outcome)

        call = plan, end, timeout_ms, broker
        runs = False
        try:
            with self._changed:
                if self._closed:
                    future.set_exception(closed())
                    return future
                loop = self._begin()
                runs = may_run and self._runner is None
                if runs:
                    self._runner, self._runner_call = threading.get_ident(), future
                else:
                    loop.call_soon_threadsafe(self._driver.submit, *call)
                    self._changed.notify()
            if runs and self._driver.has_unread_data():
                # Read first, in one pass of the loop: the broker may have closed the connection.
                loop.call_later(0, loop.call_soon, self._driver.submit, *call)
            elif runs:
                self._driver.submit(*call)
            if runs:
                loop.run_forever()
        finally:
            if runs:
                self._step_back()
        return future

    def _begin(self) -> asyncio.AbstractEventLoop:
        """Count a call; return the loop."""
        self._calls += 1
        self._is_used = True
        if self._loop is None:
            self._loop = self._driver.loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop,), name="bridgehead-admin", daemon=True
            )
            self._thread.start()
        return self._loop

    def _end(self, future: Future[Any], outcome: Try[Any]) -> None:
        """Deliver an outcome, in the thread that runs the loop."""
        with self._changed:
            self._calls -= 1
            mine = self._runner_call
            is_last = mine is None and self._calls == 0 and not self._closed
            if self._loop is not None and (mine is future or is_last):
                self._loop.stop()
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.get())

    def _stop_to_close(self) -> None:
        if self._loop is not None and not self._is_closing:
            self._loop.stop()

    def _step_back(self) -> None:
        """Leave the loop to other threads."""
        with self._changed:
            self._runner = self._runner_call = None
            if self._calls or self._closed:
                self._changed.notify()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """The I/O thread."""
        try:
            while self._take_over():
                loop.run_forever()
                self._step_back()
            loop.run_until_complete(self._driver.close())
            loop.run_until_complete(asyncio.sleep(0))  # the callbacks of ended calls
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    def _take_over(self) -> bool:
        """Wait until this thread must run the loop; return False if the client is closed."""
        with self._changed:
            while self._runner is not None or not (self._closed or self._calls):
                was_woken = self._changed.wait(_IDLE_S)
                if not was_woken and not self._is_used and self._runner is None:
                    break
                self._is_used = self._is_used and was_woken
            self._runner = threading.get_ident()
            self._is_closing = self._closed
            return not self._closed


def _runs_a_loop() -> bool:
    """Return whether this thread already runs an event loop. It then cannot run another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
