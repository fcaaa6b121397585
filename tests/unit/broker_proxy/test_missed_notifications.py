"""A revocation reaches a broker, whatever other programs put among the change notifications.

Each test revokes a config, an ACL or a token in a model of ZooKeeper, with a notification as Kafka
and Bridgehead write it. Before that, somebody has spoiled the folder of notifications.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from broker_proxy.metadata.acl_follower import AclFollower
from broker_proxy.metadata.config_follower import ConfigFollower
from broker_proxy.metadata.learned_acls import LearnedAcls
from broker_proxy.metadata.token_cache import TokenCache
from broker_proxy.metadata.token_follower import token_follower
from chaos.simulated.zookeeper import ZooKeeperModel
from cluster_model.delegation_tokens import DelegationToken, TokenSecret
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError, ZooKeeperRejectedError
from cluster_model.znodes.acls import ACL_PATHS, AclChangeZnode, AclZnode
from cluster_model.znodes.layout import START_UP_PATHS, ConfigChangeZnode, ConfigZnode
from cluster_model.znodes.operations import Create, Delete, Operation
from cluster_model.znodes.tokens import TOKEN_PATHS, TokenChangeZnode, TokenZnode
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import Read, ReadChildren, ReadResult, Stat, encode_operation, open_acl

TOPIC = ConfigResource("topics", "t")
PATTERN = ResourcePattern("TOPIC", "PREFIXED", "t")
ALICE = KafkaPrincipal("User", "alice")


class Session:
    """A session at the model.

    `before_reading` runs once, after a notification became known and before it is read.
    """

    def __init__(self, model: ZooKeeperModel) -> None:
        self.model = model
        self._session = model.open_session(10, 0)
        self._session.notify = self._fired
        self._watches: dict[str, list[Callable[[], None]]] = {}
        self._below: dict[str, Callable[[str], None]] = {}
        self.before_reading: Callable[[], None] | None = None

    @property
    def last_zxid(self) -> int:
        return self.model.zxid

    def _fired(self, kind: str, path: str) -> None:
        if kind == "below":
            for root, changed in self._below.items():
                if f"{path}/".startswith(f"{root}/"):
                    changed(path)
            return
        for watch in self._watches.pop(path, []):
            watch()

    async def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        names = self.model.children(self._session, path, watch=watch is not None)
        if names is None:
            raise NoSuchZnodeError
        if watch is not None:
            self._watches.setdefault(path, []).append(watch)
        self._run_before_reading()
        return names

    def _run_before_reading(self) -> None:
        if self.before_reading is not None:
            run, self.before_reading = self.before_reading, None
            run()

    async def exists(self, path: str, watch: Callable[[], None] | None = None) -> Stat | None:
        if watch is not None:
            self._watches.setdefault(path, []).append(watch)
        return self.model.exists(self._session, path, watch=watch is not None)

    async def watch_below(self, path: str, changed: Callable[[str], None]) -> None:
        self._below[path] = changed
        self.model.watch_below(self._session, path)

    def watches_below(self, path: str) -> bool:
        return path in self._below

    def break_connection(self) -> None:
        self._session.forget_watches()
        self._below.clear()

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        if any(read.path.startswith(f"{root}/") for read in reads for root in self._below):
            self._run_before_reading()
        return self.model.read(reads)

    def write(self, *operations: Operation) -> None:
        encoded = [encode_operation(operation, "", open_acl) for operation in operations]
        assert self.model.multi(self._session, encoded).failed_index is None


@dataclass(frozen=True)
class Kind:
    """A kind of object: its znode, its notifications, and how a broker follows it."""

    path: str
    content: bytes
    prefix: str
    notification: bytes
    new_follower: Callable[[], tuple[Any, Callable[[], bool]]]  # and: does the broker have it

    @property
    def folder(self) -> str:
        return self.prefix.rpartition("/")[0]


def config_follower() -> tuple[Any, Callable[[], bool]]:
    configs: dict[ConfigResource, Mapping[str, str]] = {}
    follower = ConfigFollower(configs.__setitem__, {})
    return follower, lambda: bool(configs.get(TOPIC))


def acl_follower() -> tuple[Any, Callable[[], bool]]:
    learned = LearnedAcls(lambda *_seen: None)
    return AclFollower(learned), lambda: bool(learned.acls.entries(PATTERN))


def follower_of_tokens() -> tuple[Any, Callable[[], bool]]:
    cache = TokenCache(TokenSecret("secret"), new_salt=bytes)
    return token_follower(cache), lambda: "t" in cache.tokens


KINDS = {
    "config": Kind(
        ConfigZnode.path(TOPIC),
        ConfigZnode.encode({"max.message.bytes": "500"}),
        ConfigChangeZnode.prefix,
        ConfigChangeZnode.encode(TOPIC),
        config_follower,
    ),
    "acl": Kind(
        AclZnode.path(PATTERN),
        AclZnode.encode([AccessControlEntry("User:alice", "*", "WRITE", "ALLOW")]),
        AclChangeZnode.prefix(PATTERN),
        AclChangeZnode.encode(PATTERN),
        acl_follower,
    ),
    "token": Kind(
        TokenZnode.path("t"),
        TokenZnode.encode(DelegationToken("t", ALICE, ALICE, (), 1, 2, 3)),
        TokenChangeZnode.prefix,
        b"t",
        follower_of_tokens,
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


class Broker:
    """A broker that follows one kind of object. The object exists, and the broker knows it."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.session = Session(ZooKeeperModel(lambda: 0))
        made: set[str] = set()
        for path in (*START_UP_PATHS, *ACL_PATHS, *TOKEN_PATHS):
            parts = path.split("/")[1:]
            for depth in range(1, len(parts) + 1):
                if (parent := "/" + "/".join(parts[:depth])) not in made:
                    made.add(parent)
                    self.session.write(Create(parent))
        self._follower, self.has_object = kind.new_follower()
        self._tasks: set[asyncio.Task[None]] = set()

    def notify(self, content: bytes | None = None) -> None:
        notification = self.kind.notification if content is None else content
        self.session.write(Create(self.kind.prefix, notification, sequential=True))

    def create(self) -> None:
        self.session.write(Create(self.kind.path, self.kind.content))
        self.notify()

    def revoke(self, notification: bytes | None = None) -> None:
        self.session.write(Delete(self.kind.path))
        self.notify(notification)

    async def start(self) -> None:
        for _ in range(3):  # so that later numbers of a new folder are lower than these
            self.notify()
        self.create()
        await self._follow()
        assert self.has_object()

    async def _follow(self) -> None:
        await self._follower.follow(cast(ZooKeeperSession, self.session), self._again)

    def _again(self) -> None:
        self._tasks.add(asyncio.ensure_future(self._follow()))

    async def settled(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    def notifications(self) -> list[str]:
        (names,) = self.session.model.read([ReadChildren(self.kind.folder)])
        return [f"{self.kind.folder}/{name}" for name in cast(list[str], names)]

    def delete_folder(self) -> None:
        for path in (*self.notifications(), self.kind.folder):
            self.session.write(Delete(path))

    async def check_revoked(self) -> None:
        await self.settled()
        assert not self.has_object()
        for task in self._tasks:
            assert task.exception() is None


@pytest.mark.parametrize("name", ["zzz", "~", "{}x", "{}9999999999", "{}2147483647", "{}99999"])
@pytest.mark.parametrize("is_valid", [True, False])
async def test_a_stray_znode_does_not_hide_later_notifications(
    kind: Kind, name: str, is_valid: bool
) -> None:
    broker = Broker(kind)
    await broker.start()
    stray = f"{kind.folder}/{name.format(kind.prefix.rpartition('/')[2])}"
    broker.session.write(Create(stray, kind.notification if is_valid else b"\xff"))
    await broker.settled()
    broker.revoke()
    await broker.check_revoked()


async def test_a_new_folder_whose_numbers_begin_again_does_not_hide_notifications(
    kind: Kind,
) -> None:
    broker = Broker(kind)
    await broker.start()
    broker.delete_folder()
    broker.session.write(Create(kind.folder))
    broker.revoke()
    await broker.check_revoked()


async def test_what_changed_while_the_folder_was_missing_is_read_when_it_exists_again(
    kind: Kind,
) -> None:
    broker = Broker(kind)
    await broker.start()
    broker.delete_folder()
    await broker.settled()
    broker.session.write(Delete(kind.path), Create(kind.folder))
    await broker.check_revoked()


@pytest.mark.parametrize("content", [b"\xff", b"a/b", b""])
async def test_after_an_invalid_notification_everything_is_read_again(
    kind: Kind, content: bytes
) -> None:
    broker = Broker(kind)
    await broker.start()
    broker.revoke(content)
    await broker.check_revoked()


async def test_after_a_notification_that_vanished_everything_is_read_again(kind: Kind) -> None:
    broker = Broker(kind)
    await broker.start()

    def vanish() -> None:
        broker.session.write(Delete(broker.notifications()[-1]))

    broker.session.before_reading = vanish
    broker.revoke()
    await broker.check_revoked()
    assert broker.session.before_reading is None


async def test_foreign_names_are_logged_once(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(kind)
    await broker.start()
    broker.session.write(Create(f"{kind.folder}/{'z' * 5_000}", b""))
    for _ in range(3):
        broker.notify()
        await broker.settled()
    (line,) = (text for text in caplog.messages if "foreign" in text)
    assert kind.folder in line
    assert len(line) < 500


@pytest.mark.parametrize("name", ["config", "token"])
async def test_notifications_are_listed_once_per_connection(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be a hundred thousand of them: neither a change nor a purge may list them."""
    broker = Broker(KINDS[name])
    await broker.start()
    listed: list[str] = []
    children, read = broker.session.children, broker.session.read

    async def counted(path: str, watch: Callable[[], None] | None = None) -> list[str]:
        listed.append(path)
        return await children(path, watch)

    async def also_counted(reads: Sequence[Read]) -> list[ReadResult]:
        listed.extend(one.path for one in reads if isinstance(one, ReadChildren))
        return await read(reads)

    monkeypatch.setattr(broker.session, "children", counted)
    monkeypatch.setattr(broker.session, "read", also_counted)
    broker.revoke()
    await broker.check_revoked()
    for path in broker.notifications():
        broker.session.write(Delete(path))  # as the controller purges them
    await broker.settled()
    assert listed == []
    broker.session.break_connection()
    broker.create()
    await broker.settled()
    assert not broker.has_object()  # Nothing is watched until the session reconnects.
    await broker._follow()
    assert broker.has_object()
    assert listed == [broker.kind.folder]


@pytest.mark.parametrize("error", [ConnectionLostError, ZooKeeperRejectedError])
async def test_a_change_whose_read_failed_is_read_by_the_next_call(
    kind: Kind, error: type[Exception]
) -> None:
    broker = Broker(kind)
    await broker.start()

    def fail() -> None:
        if error is ConnectionLostError:
            broker.session.break_connection()
        raise error("failed")

    broker.session.before_reading = fail
    broker.revoke()
    with pytest.raises(error):
        await asyncio.gather(*broker._tasks)
    assert broker.has_object()
    await broker._follow()
    assert not broker.has_object()
