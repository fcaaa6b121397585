"""The broker session follows the controller, even if it changes between two reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from broker_proxy.watcher import Callbacks, ControllerAddress, ZooKeeperWatcher
from cluster_model.znodes import ControllerZnode, NodeAddress, NodeZnode
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import Stat, ZnodeData

ADDRESS = NodeAddress("127.0.0.1:7000", "incarnation")
CONTROLLER = ControllerAddress(2, ADDRESS)


class Session:
    """/controller exists. The controller's node znode is created right after its first read."""

    def __init__(self) -> None:
        self.znodes = {ControllerZnode.path: ControllerZnode.encode(2, 0)}

    async def get(self, path: str, _watch: Callable[[], None]) -> Any:
        if path in self.znodes:
            return ZnodeData(self.znodes[path], cast(Stat, None))
        self.znodes[path] = NodeZnode.encode(ADDRESS)
        raise NoSuchZnodeError

    async def exists(self, path: str, _watch: Callable[[], None]) -> object:
        return SimpleNamespace() if path in self.znodes else None


class SlowSession(Session):
    """The node znode of the controller is read slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.znodes[NodeZnode.path(2)] = NodeZnode.encode(ADDRESS)

    async def get(self, path: str, watch: Callable[[], None]) -> Any:
        found = await super().get(path, watch)
        if path == NodeZnode.path(2):
            await self.answers.wait()
        return found


def watcher_of(session: Session, reported: list[ControllerAddress | None]) -> ZooKeeperWatcher:
    callbacks = SimpleNamespace(tokens=None, acls=None, controller_changed=reported.append)
    watcher = ZooKeeperWatcher(
        "127.0.0.1:1",
        session_timeout_ms=1000,
        connection_timeout_ms=1000,
        callbacks=cast(Callbacks, callbacks),
        log=Mock(),
        now_ms=lambda: 0,
    )
    watcher._session = cast(ZooKeeperSession, session)
    return watcher


async def test_a_slow_read_does_not_report_a_controller_after_its_end() -> None:
    reported: list[ControllerAddress | None] = []
    session = SlowSession()
    watcher = watcher_of(session, reported)
    before = asyncio.create_task(watcher._read_controller())
    await asyncio.sleep(0)
    del session.znodes[ControllerZnode.path]
    after = asyncio.create_task(watcher._read_controller())
    for _ in range(10):
        await asyncio.sleep(0)
    session.answers.set()
    await asyncio.gather(before, after)
    assert reported == [CONTROLLER, None]


async def test_the_address_of_a_node_created_between_two_reads_is_reported() -> None:
    """No watch fires. The second read finds the znode that the first read did not find."""
    reported: list[ControllerAddress | None] = []
    watcher = watcher_of(Session(), reported)
    await watcher._read_controller()
    for _ in range(10):
        await asyncio.sleep(0)
    assert reported == [ControllerAddress(2, None), CONTROLLER]
