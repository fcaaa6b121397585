"""A candidate whose term ends while it loads returns to standby."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_model.session_state import ConnectionLostError, SessionState
from controller.controller import Controller
from controller.services import ControllerState, Services, Settings
from controller.store.port import ControllerMovedError, Fence
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


class FailingStore(LoadingStore):
    """A store whose content no controller can load."""

    async def read(self, _reads: Any) -> Any:
        raise TypeError("an unexpected value")


class Candidate:
    """A controller whose stores are of the given kind."""

    def __init__(self, kind: type[LoadingStore] = LoadingStore) -> None:
        self.stores: list[LoadingStore] = []
        self.now_s = 1000.0
        self._kind = kind
        self.events: list[Event] = []
        services = SimpleNamespace(
            quirks=frozenset(),
            new_store=self._new_store,
            log=SimpleNamespace(append=self.events.append),
            now_s=lambda: self.now_s,
            now_ms=lambda: 0,
            state_changed=lambda _state: None,
            own_broker=None,
            known_states=SimpleNamespace(zxid=0, controller_is_kraft=False),
        )
        self.controller = Controller(Settings(1, 1000, 1000, 1000), cast(Services, services))

    def _new_store(self, on_state: Callable[[SessionState], None]) -> LoadingStore:
        self.stores.append(self._kind(on_state))
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


async def candidacies(candidate: Candidate, seconds: int) -> int:
    """Let a candidate try five times a second, as a node does; return how often it was elected."""
    elected = 0
    for _ in range(5 * seconds):
        if await candidate.controller.elect():
            elected += 1
            await candidate.until_standby()
        candidate.now_s += 0.2
    return elected


async def test_a_candidate_whose_terms_fail_is_elected_ever_more_rarely() -> None:
    candidate = Candidate(FailingStore)
    assert await candidacies(candidate, 60) <= 9  # rests of 0.5, 1, 2, 4, 8, 16, 16 ... s
    assert await candidacies(candidate, 160) in (9, 10, 11)  # every 16 s, not less often


async def test_an_election_that_fails_after_its_claim_is_followed_by_a_rest() -> None:
    class FailingElection(LoadingStore):
        async def elect(self, _broker_id: int, _now_ms: int) -> Fence:
            raise TypeError("an unexpected value")

    candidate = Candidate(FailingElection)
    with pytest.raises(TypeError):
        await candidate.controller.elect()
    assert not await candidate.controller.elect()
    assert len(candidate.stores) == 1


@pytest.mark.parametrize("error", [ConnectionLostError, ControllerMovedError])
async def test_a_term_that_another_controller_or_the_network_ends_is_followed_by_no_rest(
    error: type[Exception],
) -> None:
    class Moved(LoadingStore):
        async def read(self, _reads: Any) -> Any:
            raise error

    candidate = Candidate(Moved)
    for _ in range(10):
        assert await candidate.controller.elect()
        await candidate.until_standby()


async def test_a_term_that_lasted_is_followed_by_a_short_rest() -> None:
    candidate = Candidate(FailingStore)
    await candidacies(candidate, 60)
    candidate.now_s += 20
    assert await candidate.controller.elect()
    candidate.now_s += 61
    await candidate.until_standby()
    candidate.now_s += 0.6
    assert await candidate.controller.elect()
    await candidate.until_standby()
