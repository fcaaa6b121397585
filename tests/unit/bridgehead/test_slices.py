"""Long work in slices: what else runs meanwhile, and how much of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Any

import pytest

from bridgehead import slices
from bridgehead.slices import ThreadTime, at_once, batched, in_slices, in_thread, next_turn, sliced
from tests.unit.turns import turns_during


@pytest.fixture(autouse=True)
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element ends its slice."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)


async def _list(count: int) -> list[int]:
    return [number async for number in sliced(range(count))]


async def test_others_run_between_two_slices() -> None:
    numbers, turns = await turns_during(_list(50))
    assert numbers == list(range(50))
    assert turns >= 50


async def test_short_work_is_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 3600.0)
    _, turns = await turns_during(_list(50))
    assert turns <= 2


async def test_the_loop_executes_one_slice_between_two_turns_of_others() -> None:
    """However many requests are large."""
    executed: list[int] = []
    seen: list[int] = []

    async def large(number: int) -> None:
        async for _ in sliced(range(20)):
            executed.append(number)

    work = asyncio.gather(*(large(number) for number in range(7)))
    while not work.done():
        seen.append(len(executed))
        await asyncio.sleep(0)
    await work
    begun = 7  # the first slice of each
    steps = [later - earlier for earlier, later in pairwise(seen) if earlier >= begun]
    assert max(steps) <= 1
    assert executed[7:14] == list(range(7))  # in turn


async def test_a_cancelled_task_does_not_keep_its_turn() -> None:
    waiting = [asyncio.create_task(next_turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in done] == [type(None), asyncio.CancelledError, type(None)]


async def test_large_inputs_are_handled_in_the_thread_and_small_ones_here() -> None:
    assert await in_thread(False, threading.get_ident) == threading.get_ident()
    assert await in_thread(True, threading.get_ident) != threading.get_ident()


async def test_an_exception_of_the_thread_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(True, lambda: 1 // 0)


async def test_the_time_of_the_thread_is_counted_for_the_task_that_waits() -> None:
    def busy() -> None:
        ends = time.thread_time_ns() + 30_000_000
        while time.thread_time_ns() < ends:
            pass

    with ThreadTime() as ours:
        await in_thread(True, busy)
    with ThreadTime() as other:
        await in_thread(False, busy)
    assert ours.ns >= 30_000_000
    assert other.ns == 0


def _steps(functions: list[Callable[[], Any] | None]) -> Generator[Any, Any, list[Any]]:
    results = []
    for function in functions:
        try:
            results.append((yield function))
        except ZeroDivisionError:
            results.append("error")
    return results


async def test_steps_get_the_results_of_their_functions() -> None:
    functions = [None, lambda: 3, lambda: 1 // 0, None]
    results, turns = await turns_during(in_slices(_steps(functions)))
    assert results == [None, 3, "error", None]
    assert turns >= 2
    assert at_once(_steps([None, lambda: 3])) == [None, 3]


async def test_an_exception_of_steps_reaches_the_caller() -> None:
    def steps() -> Generator[None, Any, int]:
        yield None
        raise LookupError

    with pytest.raises(LookupError):
        await in_slices(steps())


def test_parts_have_at_most_the_given_size() -> None:
    assert list(batched("abcde", 2)) == ["ab", "cd", "e"]
    assert list(batched("", 2)) == []
