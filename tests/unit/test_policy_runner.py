"""A policy may raise anything and take for ever; whoever asked is answered all the same."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.policy import PolicyViolationException
from node.policy_runner import CALLS_MAX, PolicyRunner


def violate() -> None:
    raise PolicyViolationException("too many partitions")


async def test_a_violation_is_told_with_its_text() -> None:
    """Code 44 and the policy's own words."""
    refusal = await PolicyRunner("p", 1000).run(violate)
    assert refusal is not None
    assert (refusal.error, refusal.message) == (
        ErrorCode.POLICY_VIOLATION,
        "too many partitions",
    )


async def test_a_violation_without_a_text_has_none() -> None:
    """The code's own text is not the policy's."""

    def silently() -> None:
        raise PolicyViolationException

    refusal = await PolicyRunner("p", 1000).run(silently)
    assert refusal is not None
    assert refusal.message is None


async def test_what_satisfies_the_policy_is_not_refused_and_threads_are_used_again() -> None:
    """One thread makes one call after another."""
    runner, threads = PolicyRunner("p", 1000), set()
    for _ in range(5):
        assert await runner.run(lambda: threads.add(threading.get_ident())) is None
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("exception", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_whatever_else_it_raises_is_a_failure_of_that_element(
    exception: BaseException,
) -> None:
    """What it was stays in the log: it may hold what the client must not see."""

    def fail() -> None:
        raise exception

    refusal = await PolicyRunner("my.Policy", 1000).run(fail)
    assert refusal is not None
    assert refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal.message == (
        "Refused, because the policy my.Policy failed; the controller's log says how."
    )


async def test_an_overrun_is_refused_while_the_loop_goes_on() -> None:
    """The turns of the loop are counted while the policy sleeps."""
    runner, over = PolicyRunner("p", 50), threading.Event()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    refusal = await runner.run(over.wait)  # type: ignore[arg-type]
    counting.cancel()
    over.set()
    assert refusal is not None
    assert refusal.message == "Refused, because the policy p did not decide within 50 ms."
    assert turns > 100


async def test_calls_that_never_return_are_bounded_and_those_that_do_make_room() -> None:
    """Nobody can stop a thread; so no more than a few are started."""
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
        while await runner.run(lambda: None, 60_000) is not None:  # any condition at all
            await asyncio.sleep(0.001)


async def test_a_policy_that_spins_does_not_stop_the_loop() -> None:
    """Python passes the interpreter on: heartbeats and answers come late, not never."""
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


async def test_closing_calls_the_policy_once_and_ends_idle_threads() -> None:
    """A policy that fails to close is left behind."""
    runner, closed = PolicyRunner("p", 1000), []
    await runner.run(lambda: None)
    await runner.close(lambda: closed.append(threading.current_thread()))
    (thread,) = closed
    thread.join(10)
    assert not thread.is_alive()
    await PolicyRunner("p", 1000).close(violate)
