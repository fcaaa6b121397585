"""Twenty users whose requests have known results (chaos/forwarded_principals.py)."""

from __future__ import annotations

import asyncio
import itertools
import random

from chaos import forwarded_principals as users
from chaos.workload import Place, Workload
from chaos.workloads.topics import addresses


class ForwardedPrincipals:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._counts = users.Counts()
        self._stopped = False

    @property
    def acknowledged(self) -> int:
        """See chaos.workload.Load."""
        return self._counts.allowed

    def stop(self) -> None:
        """See chaos.workload.Load."""
        self._stopped = True

    async def run(self) -> None:
        """See chaos.workload.Load."""
        at = addresses(self._place, users.LISTENER)
        await users.set_up(at)
        turns = itertools.takewhile(lambda _: not self._stopped, itertools.count())
        clients = [
            users.User(name, at, random.Random(self._place.source.random())) for name in users.USERS
        ]
        for client in clients:
            client.record(self._place.history)
        await asyncio.gather(*(client.work(turns, self._counts) for client in clients))

    async def wrong(self) -> list[str]:
        """See chaos.workload.Load."""
        return self._counts.wrong


FORWARDED_PRINCIPALS = Workload(
    name="forwarded_principals",
    does="Twenty users send requests whose results show the principal that was checked.",
    start=ForwardedPrincipals,
    properties={
        name: value
        for name, value in users.properties().items()
        if name != "zookeeper.session.timeout.ms"
    },
)
