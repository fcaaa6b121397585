"""Long work in slices: other clients and heartbeats wait only some milliseconds for it.

A request may name a hundred thousand topics. `sliced` iterates over them, and lets the event loop
go on after each slice. `in_thread` calls a pure function of a large input in a thread; the
interpreter lets the event loop go on meanwhile. However many requests are large, the loop executes
only one slice between two looks at its sockets, and there is only one thread. `in_slices` runs pure
steps whose number no limit bounds, such as the records of a batch.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
P = ParamSpec("P")

# A computation in steps of less than a millisecond. It yields None after a step, or a pure function
# that takes longer, and gets the result of that function.
Steps = Generator[Callable[[], Any] | None, Any, T]
SLICE_S: Final = 0.002
# Smaller inputs are decoded, encoded and so on within a slice: a thread would take longer.
LARGE_BYTES: Final = 16 * 1024
# How long the thread may keep the interpreter. The event loop asks for it several times a turn.
_SWITCH_INTERVAL_S: Final = 0.001

_line_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)
THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-requests")
_thread_ns: ContextVar[list[int] | None] = ContextVar("_thread_ns", default=None)


def share_interpreter() -> None:
    """Make the thread give the interpreter back after a millisecond, in the whole process."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)


async def next_turn() -> None:
    """Let everything run that is ready, and those that called this before."""
    loop = asyncio.get_running_loop()
    line = _line_of_loop.setdefault(loop, deque())
    turn: asyncio.Future[None] = loop.create_future()
    line.append(turn)
    if len(line) == 1:
        loop.call_soon(_give_turn, loop, line)
    await turn


def _give_turn(loop: asyncio.AbstractEventLoop, line: deque[asyncio.Future[None]]) -> None:
    turn = line.popleft()
    if not turn.done():
        turn.set_result(None)
    if line:
        loop.call_soon(_give_turn, loop, line)


def batched(elements: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the elements in parts of at most this size."""
    for at in range(0, len(elements), size):
        yield elements[at : at + size]


async def sliced(elements: Iterable[T]) -> AsyncIterator[T]:
    """Yield the elements. Between two of them other tasks run, once a slice has passed.

    What the elements belong to may change meanwhile, so iterate over what does not change: the
    elements of a request, or a copy.
    """
    ends_s = time.monotonic() + SLICE_S
    for element in elements:
        yield element
        if time.monotonic() >= ends_s:
            await next_turn()
            ends_s = time.monotonic() + SLICE_S


def is_large(data: bytes) -> bool:
    """Return whether work on this input belongs in the thread."""
    return len(data) > LARGE_BYTES


async def in_thread(
    large: bool, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function without side effects: in the thread if its input is large, else here."""
    if not large:
        return function(*args, **kwargs)

    def timed() -> tuple[T | None, Exception | None, int]:
        began_ns = time.thread_time_ns()
        try:
            return function(*args, **kwargs), None, time.thread_time_ns() - began_ns
        except Exception as error:
            return None, error, time.thread_time_ns() - began_ns

    result, error, took_ns = await asyncio.get_running_loop().run_in_executor(THREAD, timed)
    if (counted := _thread_ns.get()) is not None:
        counted[0] += took_ns
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


async def in_slices(steps: Steps[T]) -> T:
    """Run steps; between two of them other tasks run, once a slice has passed.

    What the steps yield is called in the thread, if it is not None.
    """
    ends_s = time.monotonic() + SLICE_S
    resume: Callable[[], Callable[[], Any] | None] = partial(next, steps)
    while True:
        try:
            function = resume()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        resume = partial(next, steps)
        if function is not None:
            try:
                resume = partial(steps.send, await in_thread(True, function))
            except Exception as error:
                resume = partial(steps.throw, error)
        elif time.monotonic() >= ends_s:
            await next_turn()
            ends_s = time.monotonic() + SLICE_S


def at_once(steps: Steps[T]) -> T:
    """Run steps without interruption."""
    value: Any = None
    while True:
        try:
            function = steps.send(value)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = None if function is None else function()


class ThreadTime:
    """Counts the time that this task's calls of `in_thread` take; a context manager."""

    def __init__(self) -> None:
        self._counted = [0]

    def __enter__(self) -> ThreadTime:
        self._token = _thread_ns.set(self._counted)
        return self

    def __exit__(self, *_: object) -> None:
        _thread_ns.reset(self._token)

    @property
    def ns(self) -> int:
        """The processor time of the calls until now."""
        return self._counted[0]
