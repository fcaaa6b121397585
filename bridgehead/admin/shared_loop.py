"""The event loop of a blocking client. The loop runs in one thread at a time.

A call runs the loop in the caller's own thread, unless another thread runs it already or the
caller's thread runs an event loop of its own. So no thread has to be woken to send the request or
to return the result. While one caller runs the loop, the loop also executes the calls of the other
callers, whose threads wait.
If the call only has to wait for data on connections without TLS, the caller's thread reads the data
without the loop: a pass of the loop would take a fifth of the call's processor time.
In every other case the client's I/O thread runs the loop:
- for calls that return a future, and for calls in a thread with an event loop of its own;
- when the thread that ran the loop has its result, and calls of other threads are still open;
- while the client is idle, to close idle connections.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bridgehead.admin.driver import Driver, OnEnd
from bridgehead.admin.errors import ClientClosedError, InvalidCallError
from bridgehead.admin.requests import Plan, closed
from bridgehead.admin.results import Try

_IDLE_S: Final = 1.0  # after at most twice this time without a call, the I/O thread runs the loop


@dataclass(slots=True, eq=False)
class _Call:
    """A call. Its outcome is set once; `future` then gets it."""

    outcome: Try[Any] | None = None
    future: Future[Any] | None = None


_Request = tuple[Plan[Any], OnEnd, int | None, int | None]  # the arguments of `Driver.submit`


class SharedLoop:
    """Starts its I/O thread with the first call. Thread-safe."""

    def __init__(self, properties: Mapping[str, object], token: Callable[[], str] | None) -> None:
        """Raises AdminConfigError."""
        self._driver = Driver(properties, token)
        self._lock = threading.Lock()  # guards the attributes below, and each `_Call`
        self._changed = threading.Condition(self._lock)
        self._selector = selectors.DefaultSelector()  # of the loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runner: int | None = None  # the thread that runs the loop
        self._runner_call: _Call | None = None  # the loop stops after this call
        self._calls = 0  # calls without an outcome
        self._is_used = False
        self._closed = False
        self._is_closing = False  # the I/O thread closes the connections

    def run(self, plan: Plan[Any], timeout_ms: int | None, broker: int | None) -> Any:
        """Execute a call; return its result or raise its error."""
        thread = threading.get_ident()
        if self._runner == thread:
            plan.close()
            raise InvalidCallError("A future's callback cannot wait for a call of the same client.")
        # A thread that already runs an event loop cannot run another one.
        may_run = asyncio._get_running_loop() is None
        call = _Call()
        request = plan, partial(self._end, call), timeout_ms, broker
        runs = False
        try:
            with self._lock:
                loop = self._begin()
                runs = may_run and self._runner is None
                if runs:
                    self._runner, self._runner_call = thread, call
                else:
                    self._hand_over(loop, request)
            if runs:
                self._run(loop, call, request)
        finally:
            if runs:
                self._step_back()
        return self._future_of(call).result() if call.outcome is None else call.outcome.get()

    def start(self, plan: Plan[Any], timeout_ms: int | None, broker: int | None) -> Future[Any]:
        """Begin a call; return its future. The future cannot be cancelled."""
        call = _Call()
        future = self._future_of(call)
        try:
            with self._lock:
                loop = self._begin()
                self._hand_over(loop, (plan, partial(self._end, call), timeout_ms, broker))
        except ClientClosedError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """End every call, close the sockets and stop the I/O thread. May be called twice."""
        with self._lock:
            self._closed = True
            thread, runner = self._thread, self._runner
            if self._loop is not None and runner is not None and not self._is_closing:
                self._loop.call_soon_threadsafe(self._stop_to_close)
            self._changed.notify()
        # A future's callback may close the client. The callback runs in the thread that runs the
        # loop. That thread must not wait: the I/O thread needs the loop before it can end.
        if thread is not None and runner != threading.get_ident():
            thread.join()

    def _hand_over(self, loop: asyncio.AbstractEventLoop, request: _Request) -> None:
        """Let the thread that runs the loop begin a call. The lock is held."""
        loop.call_soon_threadsafe(self._driver.submit, *request)
        self._changed.notify()

    def _run(self, loop: asyncio.AbstractEventLoop, call: _Call, request: _Request) -> None:
        """Execute a call in this thread. If the client is closed, return without an outcome."""
        if self._selector.select(0):
            # A socket is ready, perhaps because the broker has closed the connection. So the call
            # begins one pass of the loop later, when the socket has been read.
            loop.call_later(0, loop.call_soon, self._driver.submit, *request)
        else:
            self._driver.submit(*request)
            if self._ends_without_loop(call):
                return
        self._driver.prepare_loop()
        loop.run_forever()

    def _ends_without_loop(self, call: _Call) -> bool:
        """Read from sockets until the call ends; return False if the loop must run first."""
        driver = self._driver
        while call.outcome is None:
            if driver.has_loop_work:
                return False
            ready = self._selector.select(driver.seconds_to_tick())
            if not ready:
                return False
            for key, events in ready:
                if events != selectors.EVENT_READ or not driver.read_without_loop(key.fd):
                    # If the call has ended, the loop must not run: nothing would stop it.
                    return call.outcome is not None
        return True

    def _begin(self) -> asyncio.AbstractEventLoop:
        """Count a call; return the loop. Raises ClientClosedError. The lock is held."""
        if self._closed:
            raise closed()
        self._calls += 1
        self._is_used = True
        if self._loop is None:
            self._loop = self._driver.loop = asyncio.SelectorEventLoop(self._selector)
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop,), name="bridgehead-admin", daemon=True
            )
            self._thread.start()
        return self._loop

    def _end(self, call: _Call, outcome: Try[Any]) -> None:
        """Record an outcome, in the thread that runs the loop."""
        with self._lock:
            self._calls -= 1
            call.outcome = outcome
            future = call.future
            mine = self._runner_call
            is_last = mine is None and self._calls == 0 and not self._closed
            if (mine is call or is_last) and self._loop is not None and self._loop.is_running():
                self._loop.stop()
        if future is not None:
            _deliver(future, outcome)

    def _future_of(self, call: _Call) -> Future[Any]:
        """Return a future that gets the outcome of a call."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            call.future = future
            outcome = call.outcome
        if outcome is not None:
            _deliver(future, outcome)
        return future

    def _stop_to_close(self) -> None:
        if self._loop is not None and not self._is_closing:
            self._loop.stop()

    def _step_back(self) -> None:
        """Leave the loop to other threads."""
        with self._lock:
            self._runner = self._runner_call = None
            if self._calls or self._closed:
                self._changed.notify()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """The I/O thread."""
        try:
            while self._take_over():
                self._driver.prepare_loop()
                loop.run_forever()
                self._step_back()
            loop.run_until_complete(self._driver.close())
            loop.run_until_complete(asyncio.sleep(0))  # runs the callbacks of ended calls
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    def _take_over(self) -> bool:
        """Wait until this thread must run the loop; return False if the client is closed."""
        with self._lock:
            while self._runner is not None or not (self._closed or self._calls):
                was_woken = self._changed.wait(_IDLE_S)
                if not was_woken and not self._is_used and self._runner is None:
                    break
                self._is_used = self._is_used and was_woken
            self._runner = threading.get_ident()
            self._is_closing = self._closed
            return not self._closed


def _deliver(future: Future[Any], outcome: Try[Any]) -> None:
    if outcome.error is not None:
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.get())
