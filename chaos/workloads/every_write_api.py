"""Every write API, on one object after another (chaos/every_write_api.py)."""

from __future__ import annotations

import asyncio
import itertools
import random

from chaos import every_write_api as api
from chaos.workload import Place, Workload
from chaos.workloads.topics import addresses


class EveryWriteApi:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._addresses = addresses(place, api.LISTENER)
        self._report = api.Report()
        self._stopped = False
        self._begun = 0

    @property
    def acknowledged(self) -> int:
        """See chaos.workload.Load."""
        return self._report.acknowledged

    def stop(self) -> None:
        """See chaos.workload.Load."""
        self._stopped = True

    async def run(self) -> None:
        """See chaos.workload.Load."""
        numbers = itertools.takewhile(self._begins, itertools.count())
        workers = []
        for _ in range(api.WORKERS):
            clients = {broker: api.Client(at) for broker, at in self._addresses.items()}
            source = random.Random(self._place.source.random())
            workers.append(api.Worker(clients, self._place.history, self._report, source))
        await asyncio.gather(*(worker.work(numbers) for worker in workers))

    def _begins(self, number: int) -> bool:
        self._begun = number + (not self._stopped)
        return not self._stopped

    async def wrong(self) -> list[str]:
        """See chaos.workload.Load."""
        await api.compare(self._addresses, self._begun, self._report)
        return self._report.wrong


EVERY_WRITE_API = Workload(
    name="every_write_api",
    does="Six clients use every write API on one object after another.",
    start=EveryWriteApi,
    properties={
        name: value
        for name, value in api.properties().items()
        if name != "zookeeper.session.timeout.ms"
    },
)
