"""The logs are flushed a moment after something was written, and an idle node has no timer."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from node.run.log_flusher import LogFlusher


class Log:
    """Flushes as often as `results` says: an exception is raised, True asks for another flush."""

    def __init__(self, *results: bool | OSError) -> None:
        self.results = list(results)
        self.flushed = asyncio.Event()

    def flush(self) -> bool:
        result = self.results.pop(0)
        if not self.results:
            self.flushed.set()
        if isinstance(result, OSError):
            raise result
        return result


async def finished(log: Log) -> None:
    async with asyncio.timeout(20):
        await log.flushed.wait()


async def test_events_that_are_written_together_are_flushed_once() -> None:
    log = Log(False)
    flusher = LogFlusher(log.flush)
    for _ in range(5):
        flusher.flush_soon()
    await finished(log)
    assert flusher._timer is not None
    assert flusher._timer.when() <= asyncio.get_running_loop().time()
    log.results, log.flushed = [False], asyncio.Event()
    flusher.flush_soon()
    await finished(log)


async def test_a_thread_may_ask_for_a_flush() -> None:
    log = Log(False)
    flusher = LogFlusher(log.flush)
    thread = threading.Thread(target=flusher.flush_soon)
    thread.start()
    await finished(log)
    thread.join()


async def test_a_full_disk_is_reported_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    log = Log(OSError("full"), OSError("full"), False)
    LogFlusher(log.flush).flush_soon()
    await finished(log)
    assert caplog.messages == [
        "no request is answered, because evidence cannot be written: full",
        "evidence is written again",
    ]


async def test_a_log_may_ask_for_another_flush_and_none_follows_a_stop() -> None:
    log = Log(True, True, False)
    flusher = LogFlusher(log.flush)
    flusher.flush_soon()
    await finished(log)
    flusher.stop()
    flusher.flush_soon()
    assert flusher._timer is not None
    assert flusher._timer.when() <= asyncio.get_running_loop().time()
