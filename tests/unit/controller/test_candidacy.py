"""A candidate whose term ends while it loads returns to standby."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_model.session_state import SessionState
from controller.controller import Controller
from controller.services import ControllerState, Services, Settings
from controller.store.port import Fence
from event_log.events import Event, Resigned


class LoadingStore:
    """A store that wins every election and never answers a read."""

    def __init__(self, on_state: Callable[[SessionState], None]) -> None:
        self.on_state = on_state
        self.is_open = False

    async def open(self, _timeout_s: float) -> None:
        self.is_open = True

    async def elect(self, _broker_id: int, _now_ms: int) -> Fence:
        return Fence(epoch=1, zk_version=1, zxid=1, last_commit_zxid=0)

    async def read(self, _reads: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        self.is_open = False


class Candidate:
    """A controller whose stores are LoadingStores."""

    def __init__(self) -> None:
        self.stores: list[LoadingStore] = []
        self.events: list[Event] = []
        services = SimpleNamespace(
            quirks=frozenset(),
            new_store=self._new_store,
            log=SimpleNamespace(append=self.events.append),
            now_s=lambda: 0.0,
            now_ms=lambda: 0,
            state_changed=lambda _state: None,
            own_broker=None,
            known_states=SimpleNamespace(zxid=0),
        )
        self.controller = Controller(Settings(1, 1000, 1000, 1000), cast(Services, services))

    def _new_store(self, on_state: Callable[[SessionState], None]) -> LoadingStore:
        self.stores.append(LoadingStore(on_state))
        return self.stores[-1]

    async def until_standby(self) -> None:
        async with asyncio.timeout(10):
            while self.controller.state is not ControllerState.STANDBY:
                await asyncio.sleep(0)


@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_a_candidate_that_is_superseded_while_it_loads_resigns(turns: int) -> None:
    """After 0 turns of the event loop, the task of the term has not begun."""
    candidate = Candidate()
    assert await candidate.controller.elect()
    for _ in range(turns):
        await asyncio.sleep(0)
    await candidate.controller.superseded()
    assert candidate.controller.state is ControllerState.STANDBY
    assert candidate.events == [Resigned(1, "/controller no longer names this broker")]
    assert not candidate.stores[0].is_open
    assert await candidate.controller.elect()
    assert len(candidate.stores) == 2, "the second candidacy has a session of its own"
    await candidate.controller.resign("")


@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_a_candidate_that_loses_its_session_while_it_loads_resigns(turns: int) -> None:
    candidate = Candidate()
    assert await candidate.controller.elect()
    for _ in range(turns):
        await asyncio.sleep(0)
    candidate.stores[0].on_state(SessionState.LOST)
    await candidate.until_standby()
    assert candidate.events == [Resigned(1, "the ZooKeeper session is lost")]
