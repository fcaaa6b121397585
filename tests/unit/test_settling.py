"""When a broker has applied everything, whether it is waited for, and which reads may pass."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from broker_proxy.attempt import Step
from broker_proxy.forwarding import Forwarded
from broker_proxy.settling import NewestZxid, ReadGate, Settling, Standing
from cluster_model.session_state import ConnectionLostError
from tests.unit.coordinating_broker import a_client


class ZooKeeper:
    """Notifications that are caught up with when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.lost = 0
        self.open = asyncio.Event()
        self.open.set()

    async def catch_up(self) -> None:
        self.asked += 1
        await self.open.wait()
        if self.lost:
            self.lost -= 1
            raise ConnectionLostError("gone")


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_broker_settles_when_it_has_caught_up_with_what_it_applied() -> None:
    """What comes meanwhile is caught up with afterwards, all at once."""
    zookeeper, told, behind = ZooKeeper(), list[int](), list[int]()
    settling = Settling(zookeeper.catch_up, told.append)
    zookeeper.open.clear()
    for zxid in (5, 6, 7):
        settling.applied(zxid, partial(behind.append, zxid))
        await turns()
    assert (settling.zxid, told, behind, zookeeper.asked) == (0, [], [], 1)
    zookeeper.open.set()
    await settling.until(7)
    assert (told, behind, zookeeper.asked) == ([5, 7], [5, 7], 2)


async def test_an_update_at_the_zxid_of_the_one_before_is_settled_as_well() -> None:
    """So come updates that name other live brokers: this one registered anew, for instance."""
    zookeeper, told, behind = ZooKeeper(), list[int](), list[str]()
    settling = Settling(zookeeper.catch_up, told.append)
    settling.applied(7, partial(behind.append, "first"))
    await settling.until(7)
    await turns()
    settling.applied(7, partial(behind.append, "second"))
    await turns()
    assert (told, behind, zookeeper.asked) == ([7, 7], ["first", "second"], 2)


async def test_a_broker_out_of_touch_with_zookeeper_settles_later() -> None:
    """It asks until it is answered."""
    zookeeper, told = ZooKeeper(), list[int]()
    zookeeper.lost = 2
    settling = Settling(zookeeper.catch_up, told.append)
    settling.applied(5, lambda: None)
    async with asyncio.timeout(2):
        await settling.until(5)
    assert (told, zookeeper.asked) == ([5], 3)
    settling.stop()


def test_a_broker_stands_well_once_an_update_of_its_registration_names_it() -> None:
    """Not before it, not by an update from before, not when it is left out or out of touch."""
    touch = [True]
    standing = Standing(2, lambda: touch[0])
    assert not standing.is_good
    standing.told({1, 2}, standing.generation)
    assert not standing.is_good  # not registered
    standing.registered()
    assert not standing.is_good
    before = standing.generation
    standing.told({1, 2}, before)
    assert standing.is_good
    touch[0] = False
    assert not standing.is_good
    touch[0] = True
    standing.lost()
    assert not standing.is_good
    standing.registered()
    standing.told({1, 2}, before)
    assert not standing.is_good  # it came in the registration that was lost
    standing.told({1}, standing.generation)
    assert not standing.is_good
    standing.told({1, 2}, standing.generation)
    assert standing.is_good


async def test_a_read_that_may_be_stale_is_not_answered() -> None:
    """It waits as long as a request may take; then the broker hangs up."""
    settling = Settling(ZooKeeper().catch_up, lambda zxid: None)
    standing = Standing(2, lambda: True)
    gate = ReadGate(settling, standing=standing, newest=None, timeout_s=0.1)
    assert not await gate.pass_through()
    waiting = asyncio.create_task(
        ReadGate(settling, standing=standing, newest=None, timeout_s=5).pass_through()
    )
    await turns()
    standing.registered()
    standing.told({2}, standing.generation)
    assert await waiting


async def test_a_read_waits_for_what_the_controller_knew_when_it_came() -> None:
    """Settled below that: not yet."""
    settling = Settling(ZooKeeper().catch_up, lambda zxid: None)

    async def newest() -> int:
        return 9

    gate = ReadGate(settling, standing=None, newest=newest, timeout_s=5)
    settling.applied(8, lambda: None)
    reading = asyncio.create_task(gate.pass_through())
    await turns()
    assert not reading.done()
    settling.applied(9, lambda: None)
    assert await reading


class Controller:
    """Answers questions in their turn, each with a higher zxid."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = asyncio.Event()

    async def forward(self, request: object, body: bytes) -> Forwarded:
        self.asked += 1
        zxid = self.asked
        await self.open.wait()
        return Forwarded(Step.RELAY, b"", zxid, None)


async def test_readers_ask_together_but_never_join_a_question_under_way() -> None:
    """Its answer may be older than what the reader was told before it asked."""
    controller = Controller()
    newest = NewestZxid(controller.forward, a_client(), broker_id=2, request_prefix="2.x")
    first = [asyncio.create_task(newest()) for _ in range(3)]
    await turns()
    later = [asyncio.create_task(newest()) for _ in range(4)]
    await turns()
    assert controller.asked == 1
    controller.open.set()
    assert [await task for task in first] == [1, 1, 1]
    assert [await task for task in later] == [2, 2, 2, 2]


@pytest.mark.parametrize("step", [Step.TIMED_OUT, Step.UNKNOWN_SERVER_ERROR, Step.RELAY])
async def test_without_a_controller_no_read_passes(step: Step) -> None:
    """Nobody can say what is newest; an answer that stands for no transaction says nothing."""

    async def forward(request: object, body: bytes) -> Forwarded:
        return Forwarded(step, None, 0, None)

    newest = NewestZxid(forward, a_client(), broker_id=2, request_prefix="2.x")
    settling = Settling(ZooKeeper().catch_up, lambda zxid: None)
    gate = ReadGate(settling, standing=None, newest=newest, timeout_s=5)
    assert not await gate.pass_through()


async def test_a_controller_that_cannot_be_asked_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In each term of such a controller; one that does not answer in time is not accused of it."""
    steps = [Step.TIMED_OUT, *[Step.UNKNOWN_SERVER_ERROR] * 3, Step.RELAY, Step.CLOSE]

    async def forward(request: object, body: bytes) -> Forwarded:
        return Forwarded(steps.pop(0), b"", 3, None)

    newest = NewestZxid(forward, a_client(), broker_id=2, request_prefix="2.x")
    settling = Settling(ZooKeeper().catch_up, lambda zxid: None)
    settling.applied(3, lambda: None)
    gate = ReadGate(settling, standing=None, newest=newest, timeout_s=5)
    told = []
    for _ in range(6):
        passed = await gate.pass_through()
        told.append((passed, caplog.text.count("cannot say as of when it is")))
    assert told == [(False, 0), (False, 1), (False, 1), (False, 1), (True, 1), (False, 2)]
