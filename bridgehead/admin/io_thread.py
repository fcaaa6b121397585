"""The thread of a blocking client: one event loop, which all callers share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from bridgehead.admin.driver import Driver
from bridgehead.admin.requests import Plan, closed
from bridgehead.admin.results import Try


class IoThread:
    """Starts with the first call; ends with `close`, or with the program."""

    def __init__(self, properties: Mapping[str, object], token: Callable[[], str] | None) -> None:
        """Raises AdminConfigError."""
        self._driver = Driver(properties, token)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, plan: Plan[Any], timeout_ms: int | None, broker: int | None) -> Future[Any]:
        """Begin a call; return its future. The future cannot be cancelled. Thread-safe."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def end(outcome: Try[Any]) -> None:
            if outcome.error is not None:
                future.set_exception(outcome.error)
            else:
                future.set_result(outcome.get())

        with self._lock:
            if self._closed:
                future.set_exception(closed())
            else:
                self._running_loop().call_soon_threadsafe(
                    self._driver.submit, plan, end, timeout_ms, broker
                )
        return future

    def close(self) -> None:
        """End every call, close the sockets and stop the thread. May be called twice."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._run, args=(self._loop,), name="bridgehead-admin", daemon=True
            )
            self._thread.start()
        return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            loop.run_until_complete(self._driver.close())
            loop.run_until_complete(asyncio.sleep(0))  # the callbacks of ended calls
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
