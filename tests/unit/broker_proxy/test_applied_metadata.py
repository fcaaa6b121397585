"""Which zxid a broker has applied, whether it is listed as live, and when it serves reads."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from broker_proxy.forwarding.manager import Forwarded
from broker_proxy.forwarding.retry import NextStep
from broker_proxy.metadata.applied_metadata import AppliedMetadata, Membership, NewestZxid, ReadGate
from cluster_model.session_state import ConnectionLostError
from tests.unit.broker_proxy.client_requests import a_client


class ZooKeeper:
    """A source of notifications. `catch_up` waits until `open` is set."""

    def __init__(self) -> None:
        self.requested = 0
        self.lost = 0
        self.open = asyncio.Event()
        self.open.set()

    async def catch_up(self) -> None:
        self.requested += 1
        await self.open.wait()
        if self.lost:
            self.lost -= 1
            raise ConnectionLostError("gone")


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_zxid_is_applied_after_catching_up_with_notifications() -> None:
    zookeeper, results, done = ZooKeeper(), list[int](), list[int]()
    applied_metadata = AppliedMetadata(zookeeper.catch_up, results.append)
    zookeeper.open.clear()
    for zxid in (5, 6, 7):
        applied_metadata.cache_applied(zxid, partial(done.append, zxid))
        await turns()
    assert (applied_metadata.zxid, results, done, zookeeper.requested) == (0, [], [], 1)
    zookeeper.open.set()
    await applied_metadata.wait_for(7)
    assert (results, done, zookeeper.requested) == ([5, 7], [5, 7], 2)


async def test_a_second_update_at_the_same_zxid_is_applied() -> None:
    """If only the list of live brokers changes, the update has the zxid of the previous update."""
    zookeeper, results, done = ZooKeeper(), list[int](), list[str]()
    applied_metadata = AppliedMetadata(zookeeper.catch_up, results.append)
    applied_metadata.cache_applied(7, partial(done.append, "first"))
    await applied_metadata.wait_for(7)
    await turns()
    applied_metadata.cache_applied(7, partial(done.append, "second"))
    await turns()
    assert (results, done, zookeeper.requested) == ([7, 7], ["first", "second"], 2)


async def test_catching_up_is_retried_after_a_lost_connection() -> None:
    zookeeper, results = ZooKeeper(), list[int]()
    zookeeper.lost = 2
    applied_metadata = AppliedMetadata(zookeeper.catch_up, results.append)
    applied_metadata.cache_applied(5, lambda: None)
    async with asyncio.timeout(2):
        await applied_metadata.wait_for(5)
    assert (results, zookeeper.requested) == ([5], 3)
    applied_metadata.stop()


async def test_an_update_during_a_failed_catch_up_replaces_the_earlier_one() -> None:
    zookeeper, results, done = ZooKeeper(), list[int](), list[int]()
    zookeeper.open.clear()
    zookeeper.lost = 1
    applied_metadata = AppliedMetadata(zookeeper.catch_up, results.append)
    applied_metadata.cache_applied(5, partial(done.append, 5))
    await turns()
    applied_metadata.cache_applied(6, partial(done.append, 6))
    zookeeper.open.set()
    async with asyncio.timeout(2):
        await applied_metadata.wait_for(6)
    assert (results, done, zookeeper.requested) == ([6], [6], 2)
    applied_metadata.stop()


def test_membership_is_current_after_an_update_lists_the_registered_broker() -> None:
    connected = [True]
    membership = Membership(2, lambda: connected[0])
    assert not membership.is_current
    membership.update_applied({1, 2}, membership.generation)
    assert not membership.is_current  # not registered
    membership.registered()
    assert not membership.is_current
    before = membership.generation
    membership.update_applied({1, 2}, before)
    assert membership.is_current
    connected[0] = False
    assert not membership.is_current
    connected[0] = True
    membership.lost()
    assert not membership.is_current
    membership.registered()
    membership.update_applied({1, 2}, before)
    assert not membership.is_current  # the update was received before the registration was lost
    membership.update_applied({1}, membership.generation)
    assert not membership.is_current
    membership.update_applied({1, 2}, membership.generation)
    assert membership.is_current


async def test_the_read_gate_waits_for_membership_until_its_timeout() -> None:
    applied_metadata = AppliedMetadata(ZooKeeper().catch_up, lambda zxid: None)
    membership = Membership(2, lambda: True)
    gate = ReadGate(applied_metadata, membership=membership, newest=None, timeout_s=0.1)
    assert not await gate.pass_through()
    waiting = asyncio.create_task(
        ReadGate(applied_metadata, membership=membership, newest=None, timeout_s=5).pass_through()
    )
    await turns()
    membership.registered()
    membership.update_applied({2}, membership.generation)
    assert await waiting


async def test_the_read_gate_waits_for_the_controllers_zxid() -> None:
    applied_metadata = AppliedMetadata(ZooKeeper().catch_up, lambda zxid: None)

    async def newest() -> int:
        return 9

    gate = ReadGate(applied_metadata, membership=None, newest=newest, timeout_s=5)
    applied_metadata.cache_applied(8, lambda: None)
    reading = asyncio.create_task(gate.pass_through())
    await turns()
    assert not reading.done()
    applied_metadata.cache_applied(9, lambda: None)
    assert await reading


class Controller:
    """Returns a higher zxid for each request."""

    def __init__(self) -> None:
        self.requested = 0
        self.open = asyncio.Event()

    async def forward(self, request: object, body: bytes) -> Forwarded:
        self.requested += 1
        zxid = self.requested
        await self.open.wait()
        return Forwarded(NextStep.RELAY, b"", zxid, None)


async def test_concurrent_reads_share_the_next_zxid_request() -> None:
    controller = Controller()
    newest = NewestZxid(controller.forward, a_client(), request_prefix="2.x")
    first = [asyncio.create_task(newest()) for _ in range(3)]
    await turns()
    later = [asyncio.create_task(newest()) for _ in range(4)]
    await turns()
    assert controller.requested == 1
    controller.open.set()
    assert [await task for task in first] == [1, 1, 1]
    assert [await task for task in later] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "step", [NextStep.TIMED_OUT, NextStep.UNKNOWN_SERVER_ERROR, NextStep.RELAY]
)
async def test_the_read_gate_fails_without_a_zxid_from_the_controller(step: NextStep) -> None:
    async def forward(request: object, body: bytes) -> Forwarded:
        return Forwarded(step, None, 0, None)

    newest = NewestZxid(forward, a_client(), request_prefix="2.x")
    applied_metadata = AppliedMetadata(ZooKeeper().catch_up, lambda zxid: None)
    gate = ReadGate(applied_metadata, membership=None, newest=newest, timeout_s=5)
    assert not await gate.pass_through()


async def test_a_controller_that_cannot_report_its_zxid_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = [
        NextStep.TIMED_OUT,
        *[NextStep.UNKNOWN_SERVER_ERROR] * 3,
        NextStep.RELAY,
        NextStep.CLOSE,
    ]

    async def forward(request: object, body: bytes) -> Forwarded:
        return Forwarded(steps.pop(0), b"", 3, None)

    newest = NewestZxid(forward, a_client(), request_prefix="2.x")
    applied_metadata = AppliedMetadata(ZooKeeper().catch_up, lambda zxid: None)
    applied_metadata.cache_applied(3, lambda: None)
    gate = ReadGate(applied_metadata, membership=None, newest=newest, timeout_s=5)
    results = []
    for _ in range(6):
        passed = await gate.pass_through()
        results.append((passed, caplog.text.count("cannot report its metadata zxid")))
    assert results == [(False, 0), (False, 1), (False, 1), (False, 1), (True, 1), (False, 2)]
