"""The fenced multi on a real ZooKeeper: written, refused whole, or found out after a lost reply."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kazoo.client import KazooClient

from cluster_model.session_state import SessionState
from cluster_model.znode_operations import Create, Operation, SetData
from controller.store.port import (
    ContentConflictError,
    ControllerMovedError,
    Fence,
    UnknownOutcomeError,
)
from controller.store.zookeeper import ZooKeeperStore
from event_log.writer import NullEventLog
from zookeeper_client.wire import NODE_EXISTS

MULTI = 14
SESSION_TIMEOUT_MS = 6000


class LosesReplies:
    """A proxy in front of ZooKeeper that can swallow the reply to the next multi and hang up."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listening: asyncio.Server | None = None
        self.armed = False
        self.lost = 0
        self._swallow: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._listening is not None
        self._listening.close()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._server.partition(":")
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        up = asyncio.create_task(self._pump(reader, upstream_writer, self._request))
        down = asyncio.create_task(self._pump(upstream_reader, writer, self._reply))
        self._tasks |= {up, down}
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        down.cancel()
        writer.close()
        upstream_writer.close()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        passes: Callable[[bytes], bool],
    ) -> None:
        first = True  # the connect request and its answer have no header
        while True:
            try:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            if not first and not passes(frame):
                return  # hang up: the reply is lost for ever
            first = False
            writer.write(struct.pack(">i", length) + frame)

    def _request(self, frame: bytes) -> bool:
        xid, kind = struct.unpack_from(">ii", frame)
        if self.armed and kind == MULTI and self._swallow is None:
            self._swallow, self.armed = xid, False
        return True

    def _reply(self, frame: bytes) -> bool:
        (xid,) = struct.unpack_from(">i", frame)
        if xid == self._swallow:
            self._swallow = None
            self.lost += 1
            return False
        return True


class Bench:
    """A store in office, the proxy before it, and a client beside it that sees the truth."""

    def __init__(self, connect: str, proxy: LosesReplies, chroot: str) -> None:
        self.proxy = proxy
        self.chroot = chroot
        self.states: list[SessionState] = []
        self.store = ZooKeeperStore(
            connect,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            on_state=self.states.append,
            log=NullEventLog(),
            now_s=time.monotonic,
        )
        self.fence: Fence | None = None

    async def take_office(self) -> Fence:
        await self.store.open(10)
        await self.store.ensure_start_up_paths("cluster")
        fence = await self.store.elect(1, 0)
        assert fence is not None
        self.fence = fence
        return fence

    def encode(self, *operations: Operation) -> list[bytes]:
        return [self.store.encode(operation) for operation in operations]


@pytest.fixture
async def bench(zookeeper: Any) -> AsyncIterator[Bench]:
    proxy = LosesReplies(zookeeper.hosts)
    address = await proxy.start()
    running = Bench(address + zookeeper.chroot, proxy, zookeeper.chroot)
    try:
        await running.take_office()
        yield running
    finally:
        await running.store.close()
        await proxy.stop()


@pytest.fixture
def truth(zookeeper: Any) -> Any:
    client = KazooClient(hosts=zookeeper.connect)
    client.start()
    yield client
    client.stop()
    client.close()


async def test_forty_of_forty_lost_replies_are_recognised_as_applied(
    bench: Bench, truth: KazooClient
) -> None:
    """
    Each multi took effect once, is reported with its own zxid, and none as a failure.
    """
    assert bench.fence is not None
    for number in range(40):
        bench.proxy.armed = True
        path = f"/config/topics/lost-{number}"
        committed = await bench.store.commit(bench.fence, bench.encode(Create(path, b"once")))
        stat = await asyncio.to_thread(truth.exists, path)
        counter = await asyncio.to_thread(truth.exists, "/bridgehead/commit")
        assert stat.czxid == committed.zxid
        assert counter.version == committed.number
    assert bench.proxy.lost == 40


async def test_several_under_way_with_a_lost_reply_are_all_applied_once(
    bench: Bench, truth: KazooClient
) -> None:
    """
    A pipeline whose connection breaks in the middle ends as if it had not.
    """
    assert bench.fence is not None
    effects = [bench.encode(Create(f"/config/topics/pipe-{n}", b"{}")) for n in range(12)]
    bench.proxy.armed = True
    committed, conflict = await bench.store.commit_in_turn(bench.fence, effects)
    assert conflict is None
    assert [each.number for each in committed] == list(
        range(committed[0].number, committed[0].number + 12)
    )
    names = await asyncio.to_thread(truth.get_children, "/config/topics")
    assert set(names) == {f"pipe-{n}" for n in range(12)}


async def test_what_comes_after_a_conflict_in_a_pipeline_is_not_written(
    bench: Bench, truth: KazooClient
) -> None:
    """
    The conflict is named by its operation; the multis before it stand, those after it do not.
    """
    assert bench.fence is not None
    await asyncio.to_thread(truth.create, "/config/topics/taken", b"foreign")
    effects = [
        bench.encode(Create("/config/topics/before", b"{}")),
        bench.encode(Create("/config/topics/beside", b"{}"), Create("/config/topics/taken", b"{}")),
        bench.encode(Create("/config/topics/after", b"{}")),
    ]
    committed, conflict = await bench.store.commit_in_turn(bench.fence, effects)
    assert len(committed) == 1
    assert conflict is not None
    assert (conflict.index, conflict.code) == (1, NODE_EXISTS)
    names = await asyncio.to_thread(truth.get_children, "/config/topics")
    assert set(names) == {"before", "taken"}
    again = await bench.store.commit(bench.fence, bench.encode(Create("/config/topics/next")))
    assert again.number == committed[0].number + 1


async def test_a_superseded_controller_writes_nothing(bench: Bench, truth: KazooClient) -> None:
    """
    Once the epoch has moved, the fence refuses the whole multi, definitely.
    """
    assert bench.fence is not None
    await asyncio.to_thread(truth.set, "/controller_epoch", b"2")
    with pytest.raises(ControllerMovedError):
        await bench.store.commit(bench.fence, bench.encode(Create("/config/topics/zombie")))
    assert await asyncio.to_thread(truth.exists, "/config/topics/zombie") is None


async def test_superseded_after_a_lost_reply_is_unknown_not_refused(
    bench: Bench, truth: KazooClient
) -> None:
    """
    The first copy was applied; a controller that cannot know it must not say that it was not.
    """
    assert bench.fence is not None
    bench.proxy.armed = True
    commit = asyncio.create_task(
        bench.store.commit(bench.fence, bench.encode(Create("/config/topics/who-knows")))
    )
    while SessionState.SUSPENDED not in bench.states:
        await asyncio.sleep(0)
    # kazoo needs some 50 ms to connect again: the epoch moves before the second copy is sent.
    truth.set("/controller_epoch", b"2")
    with pytest.raises(UnknownOutcomeError):
        await commit
    assert await asyncio.to_thread(truth.exists, "/config/topics/who-knows") is not None


async def test_a_conflict_names_the_effect_and_leaves_the_counter(
    bench: Bench, truth: KazooClient
) -> None:
    """
    Index 0 is the first effect; nothing of the multi is written; the next commit works.
    """
    assert bench.fence is not None
    with pytest.raises(ContentConflictError) as caught:
        await bench.store.commit(
            bench.fence,
            bench.encode(Create("/config/topics/good"), SetData("/config/topics/missing", b"x")),
        )
    assert caught.value.index == 1
    assert await asyncio.to_thread(truth.exists, "/config/topics/good") is None
    await bench.store.commit(bench.fence, bench.encode(Create("/config/topics/good")))


async def test_of_two_candidates_exactly_one_wins(zookeeper: Any) -> None:
    """
    Epochs step by one; the loser is told so and holds nothing.
    """
    stores = [
        ZooKeeperStore(
            zookeeper.connect,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            on_state=lambda _state: None,
            log=NullEventLog(),
            now_s=time.monotonic,
        )
        for _ in range(2)
    ]
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


async def test_a_candidate_recognises_its_own_election_after_a_lost_reply(zookeeper: Any) -> None:
    """
    The multi had succeeded: it is in office, with the epoch it wrote, ten times of ten.
    """
    proxy = LosesReplies(zookeeper.hosts)
    address = await proxy.start()
    candidate = Bench(address + zookeeper.chroot, proxy, zookeeper.chroot)
    # The first election also creates /controller_epoch; from the second on the claim alone is lost.
    await candidate.take_office()
    await candidate.store.close()
    try:
        for epoch in range(2, 12):
            candidate = Bench(address + zookeeper.chroot, proxy, zookeeper.chroot)
            await candidate.store.open(10)
            proxy.armed = True
            fence = await candidate.store.elect(7, 0)
            assert fence is not None
            assert (fence.epoch, proxy.lost) == (epoch, epoch - 1)
            mine = candidate.encode(Create(f"/config/topics/of-{epoch}"))
            await candidate.store.commit(fence, mine)
            await candidate.store.close()
    finally:
        await proxy.stop()
