"""An elected store, and a proxy before ZooKeeper; the proxy can drop the reply to a multi."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Sequence

from cluster_model.session_state import SessionState
from cluster_model.znodes.operations import Operation
from controller.store.port import Committed, Fence
from controller.store.zookeeper import ZooKeeperStore
from event_log.writer import NullEventLog

MULTI = 14
SESSION_TIMEOUT_MS = 6000


def new_store(
    connect: str, on_state: Callable[[SessionState], None] = lambda _state: None
) -> ZooKeeperStore:
    """Return a store that is not open yet."""
    return ZooKeeperStore(
        connect,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        on_state=on_state,
        log=NullEventLog(),
        now_s=time.monotonic,
    )


class ReplyLosingProxy:
    """A proxy that, once armed, drops the reply to the next multi and disconnects."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listening: asyncio.Server | None = None
        self.armed = False
        self.lost = 0
        self.before_lost_multi: Callable[[], object] = lambda: None
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
        first = True  # the connect request and its reply have no header
        while True:
            try:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            if not first and not passes(frame):
                return
            first = False
            writer.write(struct.pack(">i", length) + frame)

    def _request(self, frame: bytes) -> bool:
        xid, kind = struct.unpack_from(">ii", frame)
        if self.armed and kind == MULTI and self._swallow is None:
            self._swallow, self.armed = xid, False
            self.before_lost_multi()
        return True

    def _reply(self, frame: bytes) -> bool:
        (xid,) = struct.unpack_from(">i", frame)
        if xid == self._swallow:
            self._swallow = None
            self.lost += 1
            return False
        return True


class ActiveStore:
    """A store behind a proxy, with the fence that the store gets when it is elected."""

    def __init__(self, connect: str, proxy: ReplyLosingProxy, chroot: str) -> None:
        self.proxy = proxy
        self.chroot = chroot
        self.states: list[SessionState] = []
        self.store = new_store(connect, self.states.append)
        self.fence: Fence | None = None

    async def elect(self) -> Fence:
        await self.store.open(10)
        await self.store.ensure_start_up_paths("cluster")
        fence = await self.store.elect(1, 0)
        assert fence is not None
        self.fence = fence
        return fence

    def encode(self, *operations: Operation) -> list[bytes]:
        return [self.store.encode(operation) for operation in operations]


async def commit(store: ZooKeeperStore, fence: Fence, effects: Sequence[bytes]) -> Committed:
    """Write one multi. Raises ContentConflictError and the errors of `commit_pipelined`."""
    committed, conflict = await store.commit_pipelined(fence, [effects])
    if conflict is not None:
        raise conflict
    return committed[0]
