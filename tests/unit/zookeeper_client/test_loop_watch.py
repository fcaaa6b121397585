"""A session is kept alive only while the event loop runs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from zookeeper_client import session
from zookeeper_client.session import _LoopWatch


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOOP_BLOCKED_MAX_S", 0.0)


async def test_a_ping_does_not_wait_for_a_loop_that_runs() -> None:
    watch = _LoopWatch(asyncio.get_running_loop())
    for _ in range(3):
        await asyncio.to_thread(watch.wait_if_blocked, lambda: False)


async def test_a_ping_waits_until_a_blocked_loop_runs() -> None:
    watch = _LoopWatch(asyncio.get_running_loop())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch.wait_if_blocked, lambda: False).result()  # result() blocks the loop.
        waiting = pool.submit(watch.wait_if_blocked, lambda: False)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        await asyncio.wrap_future(waiting)


async def test_a_ping_of_a_stopped_client_does_not_wait() -> None:
    watch, stopped = _LoopWatch(asyncio.get_running_loop()), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch.wait_if_blocked, stopped.is_set).result()
        waiting = pool.submit(watch.wait_if_blocked, stopped.is_set)
        stopped.set()
        waiting.result(timeout=10)
