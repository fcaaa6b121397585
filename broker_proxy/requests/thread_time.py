"""Measures how long a coroutine occupies the event loop, without the time that it waits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Timed(Generic[T]):
    """Awaits a coroutine once; measures in `busy_ns` how long the coroutine's steps took."""

    def __init__(self, work: Coroutine[Any, Any, T], now_ns: Callable[[], int]) -> None:
        self._work = work
        self._now_ns = now_ns
        self.busy_ns = 0

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            began_ns = self._now_ns()
            try:
                waits_for = step()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.busy_ns += self._now_ns() - began_ns
            try:
                step = partial(self._work.send, (yield waits_for))
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:
                step = partial(self._work.throw, error)
