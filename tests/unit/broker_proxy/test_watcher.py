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


async def test_the_address_of_a_node_created_between_two_reads_is_reported() -> None:
    """No watch fires. The second read finds the znode that the first read did not find."""
    reported: list[ControllerAddress | None] = []
    callbacks = SimpleNamespace(tokens=None, acls=None, controller_changed=reported.append)
    watcher = ZooKeeperWatcher(
        "127.0.0.1:1",
        session_timeout_ms=1000,
        connection_timeout_ms=1000,
        callbacks=cast(Callbacks, callbacks),
        log=Mock(),
        now_ms=lambda: 0,
    )
    watcher._session = cast(ZooKeeperSession, Session())
    await watcher._read_controller()
    for _ in range(10):
        await asyncio.sleep(0)
    assert reported == [ControllerAddress(2, None), CONTROLLER]
