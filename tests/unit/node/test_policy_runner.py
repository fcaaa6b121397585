"""A policy may raise anything or never return; the request is answered in any case."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from unittest.mock import Mock

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.policy import PolicyViolationException
from node.assembly import policy_runner
from node.assembly.policy_runner import CALLS_MAX, PolicyRunner


def violate() -> None:
    raise PolicyViolationException("too many partitions")


async def test_violation_returns_its_message() -> None:
    error = await PolicyRunner("p", 1000).run(violate)
    assert error is not None
    assert (error.error, error.message) == (
        ErrorCode.POLICY_VIOLATION,
        "too many partitions",
    )


async def test_violation_without_a_message_returns_no_message() -> None:

    def silently() -> None:
        raise PolicyViolationException

    error = await PolicyRunner("p", 1000).run(silently)
    assert error is not None
    assert error.message is None


async def test_accepted_calls_reuse_one_thread() -> None:
    runner, threads = PolicyRunner("p", 1000), set()
    for _ in range(5):
        assert await runner.run(lambda: threads.add(threading.get_ident())) is None
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("exception", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_other_exceptions_are_unknown_server_errors(
    exception: BaseException,
) -> None:
    """The error does not contain the exception, which may have secrets. The log has it."""

    def fail() -> None:
        raise exception

    error = await PolicyRunner("my.Policy", 1000).run(fail)
    assert error is not None
    assert error.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.message == (
        "The policy my.Policy failed; see the log of the broker that called it."
    )


async def test_a_call_without_a_thread_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may limit the number of its threads."""
    no_thread = Mock(side_effect=RuntimeError("can't start new thread"))
    runner = PolicyRunner("p", 1000)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        error = await runner.run(violate)
    assert error is not None
    assert error.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.message == "Rejected: the policy p has no thread (can't start new thread)."
    assert await runner.run(lambda: None) is None


async def test_slow_call_times_out_without_blocking_the_loop() -> None:
    runner, over = PolicyRunner("p", 50), threading.Event()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    error = await runner.run(over.wait)  # type: ignore[arg-type]
    counting.cancel()
    over.set()
    assert error is not None
    assert error.message == "Rejected: the policy p did not decide within 50 ms."
    assert turns > 100


async def test_a_series_of_calls_ends_with_the_first_error() -> None:
    """The arguments of the later calls show a state in which all earlier changes are accepted."""
    called: list[str] = []
    calls = [lambda: called.append("a"), violate, lambda: called.append("c")]
    results = await PolicyRunner("p", 1000).run_in_order(calls, [])
    assert [error and error.message for error in results] == [None, "too many partitions"]
    assert called == ["a"]


async def test_a_series_ends_after_a_slow_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it went on, the results of a series could wait for many slow calls."""
    monkeypatch.setattr(policy_runner, "SERIES_S", 0.0)
    results = await PolicyRunner("p", 1000).run_in_order([lambda: None] * 3, [])
    assert results == [None]


async def test_results_before_a_call_that_hangs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_runner, "SERIES_S", 60.0)
    runner, over = PolicyRunner("p", 300), threading.Event()
    so_far: list[ApiError | None] = []
    calls = [lambda: None, over.wait, violate]
    hanging = asyncio.ensure_future(runner.run_in_order(calls, so_far))  # type: ignore[arg-type]
    while not so_far:
        await asyncio.sleep(0.001)
    assert not hanging.done()
    results = await hanging
    over.set()
    assert [error and error.message for error in results] == [
        None,
        "Rejected: the policy p did not decide within 300 ms.",
    ]


async def test_calls_in_progress_are_bounded() -> None:
    """A bound is needed, because threads cannot be stopped."""
    runner, over = PolicyRunner("p", 1), threading.Event()
    for _ in range(CALLS_MAX):
        assert isinstance(await runner.run(over.wait), ApiError)  # type: ignore[arg-type]
    began = time.monotonic()
    full = await PolicyRunner.run(runner, lambda: None, 60_000)
    assert full is not None
    assert full.message is not None
    assert f"has not returned from {CALLS_MAX} earlier calls" in full.message
    assert time.monotonic() - began < 30
    over.set()
    async with asyncio.timeout(10):
        while await runner.run(lambda: None, 60_000) is not None:  # until a call has ended
            await asyncio.sleep(0.001)


async def test_busy_policy_does_not_stop_the_loop() -> None:
    """The interpreter switches threads: heartbeats are late, but sent."""
    runner, over = PolicyRunner("p", 100), False

    def spin() -> None:
        while not over:
            pass

    assert await runner.run(spin) is not None
    before = time.monotonic()
    for _ in range(20):
        await asyncio.sleep(0)
    over = True
    assert time.monotonic() - before < 20 * 100 * sys.getswitchinterval()


async def test_close_calls_the_policy_once_and_ends_idle_threads() -> None:
    """A policy may also raise when it is closed."""
    runner, closed = PolicyRunner("p", 1000), []
    await runner.run(lambda: None)
    await runner.close(lambda: closed.append(threading.current_thread()))
    (thread,) = closed
    thread.join(10)
    assert not thread.is_alive()
    await PolicyRunner("p", 1000).close(violate)


async def test_close_calls_the_policy_even_if_every_call_hangs() -> None:
    """KIP-201: on shutdown the policy releases its resources."""
    runner, over, closed = PolicyRunner("p", 1), threading.Event(), []
    for _ in range(CALLS_MAX):
        assert isinstance(await runner.run(over.wait), ApiError)  # type: ignore[arg-type]
    await runner.close(lambda: closed.append("closed"))
    over.set()
    assert closed == ["closed"]


async def test_a_call_that_ends_while_its_timeout_expires_has_one_result() -> None:
    """The event loop is blocked meanwhile. A second result would count as that of the next call."""
    runner, so_far = PolicyRunner("p", 50), list[ApiError | None]()
    evaluation = asyncio.ensure_future(runner.run_in_order([lambda: None], so_far))
    began = time.monotonic()
    await asyncio.sleep(0)
    while not so_far or time.monotonic() - began < 0.1:
        time.sleep(0.001)  # noqa: ASYNC251 - blocks the event loop
    assert await evaluation == [None]
