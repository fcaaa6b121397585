"""The broker session follows the controller and the configs, even if they change between reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock, call

import pytest

from broker_proxy.metadata.session import Callbacks, ControllerAddress, ZooKeeperWatcher
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError, SessionState
from cluster_model.znodes.layout import (
    ConfigChangeZnode,
    ConfigZnode,
    ControllerZnode,
    NodeAddress,
    NodeZnode,
)
from event_log.events import SessionOpened
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import Read, ReadChildren, ZnodeData

ADDRESS = NodeAddress("127.0.0.1:7000", "incarnation")
CONTROLLER = ControllerAddress(2, ADDRESS)


class Session:
    """/controller exists. /bridgehead/nodes/2 is created after a first read has not found it."""

    def __init__(self) -> None:
        self.znodes = {ControllerZnode.path: ControllerZnode.encode(2, 0)}

    async def get(self, path: str, _watch: Callable[[], None]) -> Any:
        if path in self.znodes:
            return ZnodeData(self.znodes[path], b"")
        self.znodes[path] = NodeZnode.encode(ADDRESS)
        raise NoSuchZnodeError

    async def exists(self, path: str, _watch: Callable[[], None]) -> object:
        return SimpleNamespace() if path in self.znodes else None


class SlowSession(Session):
    """A read of /bridgehead/nodes/2 waits until `responses` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.responses = asyncio.Event()
        self.znodes[NodeZnode.path(2)] = NodeZnode.encode(ADDRESS)

    async def get(self, path: str, watch: Callable[[], None]) -> Any:
        znode = await super().get(path, watch)
        if path == NodeZnode.path(2):
            await self.responses.wait()
        return znode


def watcher_of(
    session: object,
    reported: list[ControllerAddress | None],
    changes: list[tuple[str, Mapping[str, str]]] | None = None,
    read_in_full: Mapping[str, Callable[[Mapping[str, Mapping[str, str]]], None]] | None = None,
) -> ZooKeeperWatcher:
    seen = [] if changes is None else changes
    callbacks = SimpleNamespace(
        tokens=None,
        acls=None,
        **{"users_read": None, "client_ids_read": None, "ips_read": None, **(read_in_full or {})},
        controller_changed=reported.append,
        config_changed=lambda resource, configs: seen.append((resource.entity_name, configs)),
    )
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


async def test_a_new_session_is_in_the_evidence_before_it_is_used() -> None:
    session = SimpleNamespace(session_id=7, state=SessionState.CONNECTED, open=AsyncMock())
    watcher = watcher_of(None, [])
    watcher._new_session = lambda: cast(ZooKeeperSession, session)  # type: ignore[method-assign]
    await watcher.open()
    assert cast(Mock, watcher._log).mock_calls == [
        call.append(SessionOpened(role="broker", session="0x7")),
        call.flush(),
    ]


async def test_a_slow_read_does_not_report_a_controller_after_a_later_read_found_none() -> None:
    reported: list[ControllerAddress | None] = []
    session = SlowSession()
    watcher = watcher_of(session, reported)
    before = asyncio.create_task(watcher._read_controller())
    await asyncio.sleep(0)
    del session.znodes[ControllerZnode.path]
    after = asyncio.create_task(watcher._read_controller())
    for _ in range(10):
        await asyncio.sleep(0)
    session.responses.set()
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


class ConfigSession:
    """Notifications and configs. The connection breaks at the reads whose numbers are in `lost`."""

    def __init__(self, *changes: tuple[str, str, bytes | None]) -> None:
        """`changes`: topic, name of the notification, content of the topic's config znode."""
        self.lost: set[int] = set()
        self.watched = ""
        self.reads: list[list[str]] = []
        self.znodes: dict[str, bytes] = {}
        for topic, name, content in changes:
            resource = ConfigResource("topics", topic)
            self.znodes[f"{ConfigChangeZnode.parent}/{name}"] = ConfigChangeZnode.encode(resource)
            if content is not None:
                self.znodes[ConfigZnode.path(resource)] = content

    async def watch_below(self, path: str, _changed: Callable[[str], None]) -> None:
        self.watched = path

    def watches_below(self, path: str) -> bool:
        return path == self.watched

    async def children(self, path: str, _watch: Callable[[], None] | None) -> list[str]:
        return [znode.removeprefix(path + "/") for znode in self.znodes if znode.startswith(path)]

    async def read(self, reads: Sequence[Read]) -> list[ZnodeData | None]:
        self.reads.append([read.path for read in reads])
        if len(self.reads) in self.lost:
            self.watched = ""
            raise ConnectionLostError("lost")
        znodes = {ConfigChangeZnode.parent: b"", **self.znodes}
        return [
            ZnodeData(znodes[read.path], bytes(68)) if read.path in znodes else None
            for read in reads
        ]


class StoredSession(ConfigSession):
    """These entities exist, each with one config."""

    def __init__(self, *entities: ConfigResource) -> None:
        super().__init__()
        for entity in entities:
            rate = {"rate": f"{entity.entity_type} {entity.entity_name}"}
            self.znodes[ConfigZnode.path(entity)] = ConfigZnode.encode(rate)

    async def read(self, reads: Sequence[Read]) -> list[Any]:
        znodes = await super().read(reads)
        return [
            await self.children(read.path, None) if isinstance(read, ReadChildren) else znode
            for read, znode in zip(reads, znodes, strict=True)
        ]


@pytest.mark.parametrize("has_data_plane", [True, False])
async def test_a_new_session_reads_each_type_of_entity_for_its_callback(
    has_data_plane: bool,
) -> None:
    """Without a data plane, client ids have no callback and are not read."""
    entities = {"users": "alice", "clients": "tool", "ips": "127.0.0.9"}
    session = StoredSession(*(ConfigResource(*entity) for entity in entities.items()))
    seen: dict[str, Mapping[str, Mapping[str, str]]] = {}
    callbacks = {"users_read": partial(seen.__setitem__, "users")}
    callbacks["ips_read"] = partial(seen.__setitem__, "ips")
    if has_data_plane:
        callbacks["client_ids_read"] = partial(seen.__setitem__, "clients")
    watcher = watcher_of(session, [], read_in_full=callbacks)
    await watcher._follow_configs(connected=True)
    assert seen == {
        entity_type: {name: {"rate": f"{entity_type} {name}"}}
        for entity_type, name in entities.items()
        if has_data_plane or entity_type != "clients"
    }


CHANGES = (
    ("b", "config_change_0000000002", ConfigZnode.encode({"flush.ms": "2"})),
    ("a", "config_change_0000000001", ConfigZnode.encode({"flush.ms": "1"})),
    ("a", "config_change_0000000003", ConfigZnode.encode({"flush.ms": "3"})),
    ("none", "config_change_0000000004", None),
    ("bad", "config_change_0000000005", b"{"),
)
APPLIED = [("a", {"flush.ms": "3"}), ("b", {"flush.ms": "2"}), ("none", {}), ("bad", {})]


async def test_many_config_changes_are_read_in_two_requests_and_applied_once_in_order() -> None:
    changes: list[tuple[str, Mapping[str, str]]] = []
    session = ConfigSession(*CHANGES)
    watcher = watcher_of(session, [], changes)
    for _ in range(2):
        await watcher._follow_configs()
    assert changes == APPLIED
    # Five notifications with their folder, four configs; then the watch has named nothing.
    assert [len(paths) for paths in session.reads] == [6, 4]


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_config_change_is_not_lost_with_the_connection(lost: int) -> None:
    changes: list[tuple[str, Mapping[str, str]]] = []
    session = ConfigSession(*CHANGES)
    session.lost = {lost}
    watcher = watcher_of(session, [], changes)
    with pytest.raises(ConnectionLostError):
        await watcher._follow_configs()
    await watcher._follow_configs()
    assert changes == APPLIED


async def test_without_the_folder_of_config_changes_the_broker_still_follows_acls() -> None:
    """If somebody deletes /config/changes, the broker follows everything except configs."""

    class WithoutFolder(Session):
        def watches_below(self, _path: str) -> bool:
            return True

        async def children(self, path: str, _watch: Callable[[], None]) -> list[str]:
            assert path == ConfigChangeZnode.parent
            raise NoSuchZnodeError

    watcher = watcher_of(WithoutFolder(), [])
    watcher._configs._read_in = watcher._session
    watcher._acls = acls = Mock(follow=AsyncMock())
    await watcher.watch()
    acls.follow.assert_awaited_once()
