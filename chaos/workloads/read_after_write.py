"""Pairs of a write and a read at another broker (chaos/read_after_write.py)."""

from __future__ import annotations

import asyncio
import itertools
import random

from chaos import read_after_write as pairs
from chaos.workload import Place, Workload
from chaos.workloads.topics import addresses


class ReadAfterWrite:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._counts = pairs.Counts(place.progress)
        self._stopped = False

    def stop(self) -> None:
        """See chaos.workload.Load."""
        self._stopped = True

    async def run(self) -> None:
        """See chaos.workload.Load."""
        at = addresses(self._place)
        numbers = itertools.takewhile(lambda _: not self._stopped, itertools.count())
        sources = [random.Random(self._place.source.random()) for _ in range(pairs.WORKERS)]
        await asyncio.gather(
            *(
                pairs.pairs(at, numbers, self._counts, source, self._place.history)
                for source in sources
            )
        )

    async def wrong(self) -> list[str]:
        """See chaos.workload.Load."""
        counts = self._counts
        stale = [f"the topic {name} was acknowledged but not read" for name in counts.stale]
        return stale + [f"no broker answered the read of {name}" for name in counts.unanswered]


READ_AFTER_WRITE = Workload(
    name="read_after_write",
    does="Clients create a topic at one broker and read it at another broker, which must know it.",
    start=ReadAfterWrite,
    properties={
        name: value
        for name, value in pairs.properties("cluster", "local").items()
        if name != "zookeeper.session.timeout.ms"
    },
    node_properties=pairs.delays(),
)
