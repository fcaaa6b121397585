"""The player waits for operations; it reports clients that stop or make no progress."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

import pytest

from chaos.fault import Target
from chaos.player import NoProgressError, Player
from chaos.scenario import Expectation
from chaos.scenarios.kills import POLITE_STOP
from chaos.simulated.network import NetworkLoop
from chaos.simulated.virtual_time import virtual_host
from chaos.workload import Place, Workload

AFTER = 5


class Clients:
    """A load that runs one function."""

    def __init__(self, place: Place, work: Callable[[Clients], Coroutine[Any, Any, None]]) -> None:
        self.progress = place.progress
        self.stopped_at = 0
        self.stopped = asyncio.Event()
        self._work = work

    async def run(self) -> None:
        await self._work(self)

    def stop(self) -> None:
        self.stopped_at = self.progress.acknowledged
        self.stopped.set()

    async def wrong(self) -> list[str]:
        return []


def play(work: Callable[[Clients], Coroutine[Any, Any, None]]) -> int:
    """Play a scenario without faults; return the number of successes when the clients stopped."""
    place = Place(
        address=lambda _broker, _listener: "",
        brokers=(),
        source=random.Random(1),
        history=cast(Any, None),
    )
    clients = Clients(place, work)
    scenario = replace(
        POLITE_STOP,
        workload=Workload(name="fake", does="", start=lambda _place: clients),
        steps=(),
        after=AFTER,
        expects=Expectation(elections=(0, None)),
    )
    player = Player(scenario, random.Random(1), cast(Target, None), lambda _sentence: None)
    loop = NetworkLoop(1)
    with virtual_host(loop, 1):
        assert loop.run_until_complete(player.play(place)) == []
    return clients.stopped_at


def test_clients_stop_as_soon_as_enough_operations_succeeded() -> None:
    async def work(clients: Clients) -> None:
        while not clients.stopped.is_set():
            await asyncio.sleep(1)
            clients.progress.add()

    assert play(work) == AFTER


def test_a_batch_may_exceed_the_number_of_operations() -> None:
    async def work(clients: Clients) -> None:
        clients.progress.add(AFTER + 2)
        await clients.stopped.wait()

    assert play(work) == AFTER + 2


def test_clients_that_stop_too_early_are_reported() -> None:
    async def work(clients: Clients) -> None:
        clients.progress.add(AFTER - 1)

    with pytest.raises(NoProgressError, match="the clients stopped before the scenario was over"):
        play(work)


def test_an_error_of_the_clients_is_raised() -> None:
    async def work(clients: Clients) -> None:
        raise OSError("the clients failed")

    with pytest.raises(OSError, match="the clients failed"):
        play(work)


def test_clients_without_progress_are_reported() -> None:
    async def work(clients: Clients) -> None:
        clients.progress.add(AFTER - 2)
        await clients.stopped.wait()

    with pytest.raises(
        NoProgressError, match="2 of 5 operations were not acknowledged within 90 s"
    ):
        play(work)
