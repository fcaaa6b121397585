"""The fenced multi on a real ZooKeeper: committed, failed, or resent after a lost reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from cluster_model.session_state import SessionState
from cluster_model.znodes.layout import (
    BRIDGEHEAD_PATHS,
    START_UP_PATHS,
    ControllerZnode,
    OutcomeZnode,
)
from cluster_model.znodes.operations import Create, SetData
from controller.store.port import (
    ContentConflictError,
    ControllerMovedError,
    UnknownOutcomeError,
)
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from tests.integration.store_peers import ActiveStore, ReplyLosingProxy, commit, new_store
from tests.integration.zookeeper_peers import kazoo_client
from zookeeper_client.wire import NODE_EXISTS, ReadChildren, ReadData, ZnodeData


@pytest.fixture
async def active(zookeeper: Any) -> AsyncIterator[ActiveStore]:
    proxy = ReplyLosingProxy(zookeeper.hosts)
    address = await proxy.start()
    running = ActiveStore(address + zookeeper.chroot, proxy, zookeeper.chroot)
    try:
        await running.elect()
        yield running
    finally:
        await running.store.close()
        await proxy.stop()


@pytest.fixture
def truth(zookeeper: Any) -> Any:
    with kazoo_client(zookeeper.connect) as client:
        yield client


async def test_a_multi_with_a_lost_reply_is_applied_once_and_reported_with_its_zxid(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    for number in range(40):
        active.proxy.armed = True
        path = f"/config/topics/lost-{number}"
        committed = await commit(active.store, active.fence, active.encode(Create(path, b"once")))
        stat = await asyncio.to_thread(truth.exists, path)
        counter = await asyncio.to_thread(truth.exists, "/bridgehead/commit")
        assert stat.czxid == committed.zxid
        assert counter.version == committed.number
    assert active.proxy.lost == 40


async def test_pipelined_multis_are_each_applied_once_despite_a_lost_reply(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    effects = [active.encode(Create(f"/config/topics/pipe-{n}", b"{}")) for n in range(12)]
    active.proxy.armed = True
    committed, conflict = await active.store.commit_pipelined(active.fence, effects)
    assert conflict is None
    assert [multi.number for multi in committed] == list(
        range(committed[0].number, committed[0].number + 12)
    )
    names = await asyncio.to_thread(truth.get_children, "/config/topics")
    assert set(names) == {f"pipe-{n}" for n in range(12)}


async def test_multis_after_a_conflict_are_not_written(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    await asyncio.to_thread(truth.create, "/config/topics/taken", b"external")
    effects = [
        active.encode(Create("/config/topics/before", b"{}")),
        active.encode(
            Create("/config/topics/beside", b"{}"), Create("/config/topics/taken", b"{}")
        ),
        active.encode(Create("/config/topics/after", b"{}")),
    ]
    committed, conflict = await active.store.commit_pipelined(active.fence, effects)
    assert len(committed) == 1
    assert conflict is not None
    assert (conflict.index, conflict.code) == (1, NODE_EXISTS)
    names = await asyncio.to_thread(truth.get_children, "/config/topics")
    assert set(names) == {"before", "taken"}
    again = await commit(active.store, active.fence, active.encode(Create("/config/topics/next")))
    assert again.number == committed[0].number + 1


async def test_a_superseded_controller_writes_nothing(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    await asyncio.to_thread(truth.set, "/controller_epoch", b"2")
    with pytest.raises(ControllerMovedError):
        await commit(active.store, active.fence, active.encode(Create("/config/topics/zombie")))
    assert await asyncio.to_thread(truth.exists, "/config/topics/zombie") is None


async def test_the_outcome_is_unknown_if_the_controller_is_superseded_after_a_lost_reply(
    active: ActiveStore, truth: KazooClient
) -> None:
    """The first copy was applied, but the controller cannot know that."""
    assert active.fence is not None
    active.proxy.armed = True
    writing = asyncio.create_task(
        commit(active.store, active.fence, active.encode(Create("/config/topics/unknown")))
    )
    while SessionState.SUSPENDED not in active.states:
        await asyncio.sleep(0)
    # The store reconnects after about 50 ms, so the epoch changes before it sends the second copy.
    truth.set("/controller_epoch", b"2")
    with pytest.raises(UnknownOutcomeError):
        await writing
    assert await asyncio.to_thread(truth.exists, "/config/topics/unknown") is not None


async def test_a_conflict_names_the_failed_operation_and_does_not_change_the_counter(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    with pytest.raises(ContentConflictError) as caught:
        await commit(
            active.store,
            active.fence,
            active.encode(Create("/config/topics/good"), SetData("/config/topics/missing", b"x")),
        )
    assert caught.value.index == 1
    assert await asyncio.to_thread(truth.exists, "/config/topics/good") is None
    await commit(active.store, active.fence, active.encode(Create("/config/topics/good")))


async def test_of_two_candidates_exactly_one_is_elected(zookeeper: Any) -> None:
    stores = [new_store(zookeeper.connect) for _ in range(2)]
    try:
        for store in stores:
            await store.open(10)
        await asyncio.gather(*(store.ensure_start_up_paths("cluster") for store in stores))
        fences = await asyncio.gather(*(store.elect(n, 0) for n, store in enumerate(stores)))
        (winner,) = [fence for fence in fences if fence is not None]
        assert winner.epoch == 1
    finally:
        for store in stores:
            await store.close()


async def test_a_candidate_recognizes_its_own_election_after_a_lost_reply(zookeeper: Any) -> None:
    proxy = ReplyLosingProxy(zookeeper.hosts)
    address = await proxy.start()
    candidate = ActiveStore(address + zookeeper.chroot, proxy, zookeeper.chroot)
    # The first election also creates /controller_epoch; later elections send a single multi.
    await candidate.elect()
    await candidate.store.close()
    try:
        for epoch in range(2, 12):
            candidate = ActiveStore(address + zookeeper.chroot, proxy, zookeeper.chroot)
            await candidate.store.open(10)
            proxy.armed = True
            fence = await candidate.store.elect(7, 0)
            assert fence is not None
            assert (fence.epoch, proxy.lost) == (epoch, epoch - 1)
            write = candidate.encode(Create(f"/config/topics/of-{epoch}"))
            await commit(candidate.store, fence, write)
            await candidate.store.close()
    finally:
        await proxy.stop()


async def test_a_candidate_does_not_claim_the_election_of_an_earlier_incarnation(
    zookeeper: Any, truth: KazooClient
) -> None:
    """The earlier election has the same broker id and epoch, but another session."""
    proxy = ReplyLosingProxy(zookeeper.hosts)
    address = await proxy.start()
    candidate = ActiveStore(address + zookeeper.chroot, proxy, zookeeper.chroot)
    try:
        await candidate.store.open(10)
        await candidate.store.ensure_start_up_paths("cluster")
        await asyncio.to_thread(truth.create, "/controller_epoch", b"0")

        def elect_earlier_incarnation() -> None:
            truth.create("/controller", ControllerZnode.encode(7, 0), ephemeral=True)
            truth.set("/controller_epoch", b"1")

        proxy.armed, proxy.before_lost_multi = True, elect_earlier_incarnation
        assert await candidate.store.elect(7, 0) is None
        assert proxy.lost == 1
    finally:
        await candidate.store.close()
        await proxy.stop()


async def test_a_resent_multi_in_a_pipeline_reports_its_own_zxid(
    active: ActiveStore, truth: KazooClient
) -> None:
    """Later multis change the counter's zxid. The outcome znode keeps the zxid of its own multi."""
    assert active.fence is not None
    first = active.store.next_commit
    paths = [OutcomeZnode.path(first + n) for n in range(6)]
    active.proxy.armed = True
    effects = [active.encode(Create(path, b"{}")) for path in paths]
    committed, conflict = await active.store.commit_pipelined(active.fence, effects)
    stats = [await asyncio.to_thread(truth.exists, path) for path in paths]
    assert conflict is None
    assert [multi.zxid for multi in committed] == [stat.czxid for stat in stats]


async def test_start_up_paths_are_created_once_and_the_first_cluster_id_stays(
    active: ActiveStore, truth: KazooClient, zookeeper: Any
) -> None:
    """The same holds in a chroot of two levels, /a/b."""
    assert active.fence is not None
    await commit(active.store, active.fence, active.encode(Create("/config/topics/kept")))
    assert await active.store.ensure_start_up_paths("another") == "cluster"
    for path in (*START_UP_PATHS, *BRIDGEHEAD_PATHS):
        stat = await asyncio.to_thread(truth.exists, path)
        assert stat is not None, path
        assert stat.version == 0, path
    assert (await asyncio.to_thread(truth.get, "/bridgehead/commit"))[1].version == 1
    below = ActiveStore(zookeeper.connect + "/a/b", active.proxy, zookeeper.chroot + "/a/b")
    try:
        await below.store.open(10)
        assert await below.store.ensure_start_up_paths("nested") == "nested"
        assert await asyncio.to_thread(truth.exists, "/a/b/brokers/ids") is not None
    finally:
        await below.store.close()


async def test_reads_return_results_in_order_over_several_requests(
    active: ActiveStore,
) -> None:
    """Every second znode is missing; its result is None."""
    assert active.fence is not None
    for start in range(0, 1000, 250):
        numbers = range(start, start + 250)
        creates = [Create(f"/config/topics/t{n}", b"%d" % n) for n in numbers]
        await commit(active.store, active.fence, active.encode(*creates))
    names = [f"t{n // 2}" if n % 2 == 0 else f"missing{n}" for n in range(2000)]
    results = await active.store.read([ReadData(f"/config/topics/{name}") for name in names])
    data = [result.data if isinstance(result, ZnodeData) else result for result in results]
    assert data == [b"%d" % (n // 2) if n % 2 == 0 else None for n in range(2000)]
    (children,) = await active.store.read([ReadChildren("/config/topics")])
    assert isinstance(children, list)
    assert len(children) == 1000


async def test_a_multi_at_the_limits_is_written_and_a_larger_one_is_not_sent(
    active: ActiveStore, truth: KazooClient
) -> None:
    assert active.fence is not None
    bare = len(active.store.encode(Create("/config/topics/t000", b"")))
    room = MULTI_BYTES_MAX // OPERATIONS_MAX - bare
    full = [Create(f"/config/topics/t{n:03}", b"x" * room) for n in range(OPERATIONS_MAX)]
    committed = await commit(active.store, active.fence, active.encode(*full))
    assert len(await asyncio.to_thread(truth.get_children, "/config/topics")) == OPERATIONS_MAX
    one_more = [SetData("/config/topics/t000", b"")] * (OPERATIONS_MAX + 1)
    with pytest.raises(AssertionError):
        await commit(active.store, active.fence, active.encode(*one_more))
    assert active.store.next_commit == committed.number + 1
