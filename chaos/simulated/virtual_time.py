"""An asyncio event loop with virtual time, which jumps to the next timer when nothing is ready.

Each callback belongs to the simulated process in whose context it was scheduled. The loop holds
back the callbacks of a paused process, and drops the callbacks of a process that has ended.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import random
import secrets
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any, Final
from unittest.mock import patch

from bridgehead import slices

_NS: Final = 1_000_000_000
# Each callback takes this long, so that events in sequence have different times.
_CALLBACK_NS: Final = 1_000
_START_NS: Final = 1_000 * _NS
_WALL_START_NS: Final = 1_700_000_000 * _NS


class Process:
    """A simulated process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_paused = False
        self.has_ended = False
        self.wall_offset_ns = 0
        self.held: deque[Callback] = deque()
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)


_PROCESS: Final[contextvars.ContextVar[Process | None]] = contextvars.ContextVar(
    "process", default=None
)


class Callback:
    """A scheduled callback, with the methods of asyncio.TimerHandle that its callers use.

    asyncio's own handles support a debug mode, and are compared by Python code. Both together would
    take a tenth of a simulation's time.
    """

    __slots__ = ("_when", "arguments", "context", "function")

    def __init__(
        self,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        context: contextvars.Context,
        when: float,
    ) -> None:
        self.function: Callable[..., object] | None = function
        self.arguments = arguments
        self.context = context
        self._when = when

    def when(self) -> float:
        """See asyncio.TimerHandle."""
        return self._when

    def cancel(self) -> None:
        """See asyncio.Handle."""
        self.function = None
        self.arguments = ()

    def cancelled(self) -> bool:
        """See asyncio.Handle."""
        return self.function is None


class NothingLeftError(Exception):
    """No callback is left to run, and the simulation has not ended."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """The event loop. It has no selector and no threads."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = _START_NS
        self._callbacks: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._timer_numbers = itertools.count()  # timers of equal times run in this order

    def time(self) -> float:
        """Return the virtual monotonic time in seconds. No two readings are equal."""
        self.now_ns += 1
        return self.now_ns / _NS

    def time_ns(self) -> int:
        """Return the virtual monotonic time in nanoseconds."""
        self.now_ns += 1
        return self.now_ns

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Callback:
        if context is None:
            context = contextvars.copy_context()
        new = Callback(callback, args, context, 0.0)
        self._callbacks.append(new)
        return new

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Callback:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Callback:
        if context is None:
            context = contextvars.copy_context()
        new = Callback(callback, args, context, when)
        heappush(self._timers, (when, next(self._timer_numbers), new))
        return new

    def resume(self, process: Process) -> None:
        """Let a paused process run what became due during the pause, in order."""
        process.is_paused = False
        self._callbacks.extend(process.held)
        process.held.clear()

    def _run_once(self) -> None:
        """Run callbacks until the loop is stopped.

        In each turn, run everything that is ready. If nothing is, first advance to the next timer.
        """
        # A tenth of a simulated run is spent here, so this loop calls no function of its own.
        ready, timers = self._callbacks, self._timers
        while not self._stopping:  # type: ignore[attr-defined]
            while timers and timers[0][2].function is None:
                heappop(timers)
            if not ready:
                if not timers:
                    raise NothingLeftError("the simulation is stuck: nothing is scheduled")
                due_ns = int(timers[0][0] * _NS) + 1
                if due_ns > self.now_ns:
                    self.now_ns = due_ns
            self.now_ns += 1
            now_s = self.now_ns / _NS
            while timers and timers[0][0] <= now_s:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                callback = ready.popleft()
                function, context = callback.function, callback.context
                if function is None:
                    continue
                process = context.get(_PROCESS)
                if process is not None:
                    if process.has_ended:
                        continue
                    if process.is_paused:
                        process.held.append(callback)
                        continue
                self.now_ns += _CALLBACK_NS
                try:
                    context.run(function, *callback.arguments)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # as asyncio.Handle does
                    message = f"an exception in {function!r}"
                    self.call_exception_handler({"message": message, "exception": error})

    def _write_to_self(self) -> None:
        """Do nothing: there is no selector to wake."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there is no I/O."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        """Call functions of `slices` here; refuse others, because threads are not deterministic."""
        if executor is not slices.THREAD:
            raise NotImplementedError(f"the simulation has no threads for {func!r}")
        future: asyncio.Future[Any] = self.create_future()
        future.set_result(func(*args))
        return future


def current_process() -> Process | None:
    """Return the process whose callback runs; None for clients and the harness."""
    return _PROCESS.get()


@contextmanager
def virtual_host(loop: SimulatedLoop, seed: int) -> Iterator[None]:
    """Replace the clocks and random ids of this Python process with simulated ones."""
    source = random.Random(f"random ids {seed}")

    def wall_ns() -> int:
        process = _PROCESS.get()
        offset_ns = 0 if process is None else process.wall_offset_ns
        return _WALL_START_NS + loop.now_ns + offset_ns

    replacements: dict[tuple[Any, str], Callable[..., Any]] = {
        (time, "monotonic"): loop.time,
        (time, "monotonic_ns"): loop.time_ns,
        (time, "thread_time_ns"): loop.time_ns,
        (time, "time"): lambda: wall_ns() / _NS,
        (time, "time_ns"): wall_ns,
        (secrets, "token_bytes"): lambda size=32: source.randbytes(size),
        (secrets, "token_hex"): lambda size=32: source.randbytes(size).hex(),
        (secrets, "randbits"): source.getrandbits,
        (uuid, "uuid4"): lambda: uuid.UUID(bytes=source.randbytes(16), version=4),
    }
    patches = [patch.object(module, name, new) for (module, name), new in replacements.items()]
    try:
        for replacement in patches:
            replacement.start()
        yield
    finally:
        for replacement in patches:
            replacement.stop()
