"""A workload as a value, and the running load."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from bridgehead.cluster import ClientHistory
from bridgehead.kafka_wire.errors import ErrorCode

# The indefinite errors that a broker may return for a write under faults. Workloads report any
# other error that they do not expect, even an indefinite one.
UNKNOWN_OUTCOMES: Final = frozenset(
    {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER}
)

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


def pauses() -> Iterator[float]:
    """Yield the pauses, in seconds, of a load that reads until all brokers agree.

    The pauses grow, because with a seeded bug the brokers may never agree.
    """
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


class Load(Protocol):
    """Running clients. They add each operation that succeeds to the place's progress."""

    async def run(self) -> None:
        """Work until `stop` is called and all operations have ended."""

    def stop(self) -> None:
        """Start no further operation."""

    async def wrong(self) -> list[str]:
        """Return a sentence for each thing that is wrong.

        Wrong is an unexpected result, or a broker's state that contradicts the clients' results.
        """


class Progress:
    """The number of operations that succeeded so far. One task at a time can wait for more."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self._due = 0
        self._is_reached = asyncio.Event()

    def add(self, count: int = 1) -> None:
        """Count operations that succeeded."""
        self.acknowledged += count
        if self.acknowledged >= self._due:
            self._is_reached.set()

    async def reach(self, count: int) -> None:
        """Wait until `count` operations have succeeded since the start."""
        self._due = count
        self._is_reached.clear()
        self.add(0)
        await self._is_reached.wait()


@dataclass(slots=True)
class Disturbances:
    """How many faults were injected and healed, and how many the cluster has recovered from.

    The player counts faults and healings. A load that needs `recovered` counts it itself.
    """

    injected: int = 0
    healed: int = 0
    recovered: int = 0

    @property
    def is_calm(self) -> bool:
        """Whether the cluster has recovered from every fault."""
        return self.recovered == self.injected


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a load works: the brokers' addresses, the seed, and the evidence of the clients."""

    address: Callable[[int, str | None], str]  # of a broker's listener; None names the first one
    brokers: tuple[int, ...]
    source: random.Random
    history: ClientHistory
    progress: Progress = field(default_factory=Progress)
    disturbances: Disturbances = field(default_factory=Disturbances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of load."""

    name: str
    does: str  # one sentence
    start: Callable[[Place], Load]
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that every broker needs for this load."""
    node_properties: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Properties of single brokers."""
