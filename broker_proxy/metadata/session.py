"""The broker's ZooKeeper session: registers the broker; watches controller, configs, ACLs, tokens.

The session writes nothing but the registration. kazoo drops raw watches at every reconnect, so
after a reconnect the watcher sets its watches again and reads what has changed. After a lost
session the watcher opens a new one, and the broker registers again under a new broker epoch.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from broker_proxy.metadata.acl_follower import AclFollower, AclListener
from broker_proxy.metadata.config_follower import ConfigFollower
from broker_proxy.metadata.registration import Registration
from broker_proxy.metadata.token_cache import TokenCache
from broker_proxy.metadata.token_follower import token_follower
from cluster_model.image import BrokerRegistration, Topic
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError, SessionState, ZooKeeperRejectedError
from cluster_model.topic_names import has_valid_path
from cluster_model.znodes.access import OPEN_ACCESS, ZooKeeperAccess
from cluster_model.znodes.layout import (
    BRIDGEHEAD_PATHS,
    BrokerIdZnode,
    ClusterIdZnode,
    CommitZnode,
    ConfigZnode,
    ControllerZnode,
    NodeAddress,
    NodeZnode,
    PartitionZnode,
    TopicZnode,
)
from cluster_model.znodes.values import ZnodeContentError
from event_log.events import BrokerRegistered, SessionLost, SessionOpened
from event_log.writer import EventLog
from zookeeper_client.config_reading import read_configs
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import NO_NODE, NODE_EXISTS, ReadChildren, ReadData, Stat, ZnodeData

_log = logging.getLogger(__name__)
_RETRY_S: Final = 0.2
_RETRY_MAX_S: Final = 3.0  # after rejected registrations; a repair by hand takes effect then
Result = TypeVar("Result")


class RegistrationRejectedError(Exception):
    """The broker id is in use, or ZooKeeper refused the znodes. The operator sees the text."""


@dataclass(frozen=True, slots=True)
class ControllerAddress:
    """The controller's id and address; `node` is None while the address is unknown.

    `is_kraft`: a KRaft controller owns /controller, and `broker_id` is its node id.
    """

    broker_id: int
    node: NodeAddress | None
    is_kraft: bool = False


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The node's callbacks. Called on the event loop; must not block."""

    controller_changed: Callable[[ControllerAddress | None], None]
    config_changed: Callable[[ConfigResource, Mapping[str, str]], None]
    users_read: Callable[[Mapping[str, Mapping[str, str]]], None]  # by name in ZooKeeper
    ips_read: Callable[[Mapping[str, Mapping[str, str]]], None]  # by name in ZooKeeper
    registered: Callable[[int], None]  # argument: the broker epoch
    session_changed: Callable[[SessionState], None]
    # None without a data plane: then no quota on records is enforced.
    client_ids_read: Callable[[Mapping[str, Mapping[str, str]]], None] | None = None
    tokens: TokenCache | None = None  # None without delegation tokens
    acls: AclListener | None = None  # None without an authorizer


class ZooKeeperWatcher:
    """Opens one broker session after another until the node stops."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        callbacks: Callbacks,
        log: EventLog,
        now_ms: Callable[[], int],
        access: ZooKeeperAccess = OPEN_ACCESS,
        on_reply: Callable[[float], None] = lambda _latency_ms: None,
    ) -> None:
        """`on_reply`: see ZooKeeperSession."""
        self._connect = connect
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._callbacks = callbacks
        self._log = log
        self._now_ms = now_ms
        self._access = access
        self._on_reply = on_reply
        self._session: ZooKeeperSession | None = None
        self._registration: Registration | None = None
        self._registering = asyncio.Lock()
        self._reported_epoch = -1
        self._registered_in: ZooKeeperSession | None = None
        self._reported: ControllerAddress | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._configs = _config_follower(callbacks)
        self._tokens = token_follower(callbacks.tokens) if callbacks.tokens is not None else None
        self._acls = AclFollower(callbacks.acls) if callbacks.acls is not None else None
        self._reading_controller = asyncio.Lock()
        # False until the node first calls `watch`. From then on, it is called after each connect.
        self._is_watching = False
        self._cluster_id = ""  # unknown until the node starts
        self._is_elsewhere = False  # logged once
        self._stopped = False

    @property
    def last_contact_s(self) -> float:
        """Monotonic time in seconds at which the last answered request was sent."""
        return self._session.last_contact_s if self._session is not None else -math.inf

    @property
    def session_timeout_ms(self) -> float:
        """The timeout of the broker session; the configured one while there is no session."""
        session = self._session
        return self._session_timeout_ms if session is None else session.granted_timeout_ms

    @property
    def _live(self) -> ZooKeeperSession:
        if self._session is None:
            raise ConnectionLostError("there is no ZooKeeper session at the moment")
        return self._session

    async def open(self) -> None:
        """Connect. Raises ConnectionLostError when no server answers in time."""
        session = self._new_session()
        await session.open(self._connection_timeout_ms / 1000)
        if session.state is SessionState.LOST:
            # `_state_changed` ignored the loss, because `_session` was None.
            raise ConnectionLostError("the new ZooKeeper session was lost at once")
        self._session = session
        self._log.append(SessionOpened(role="broker", session=f"0x{session.session_id:x}"))
        # If this process is killed after a write, the evidence still shows whose session wrote.
        self._log.flush()

    def _new_session(self) -> ZooKeeperSession:
        return ZooKeeperSession(
            self._connect,
            session_timeout_ms=self._session_timeout_ms,
            on_state=self._state_changed,
            access=self._access,
            on_reply=self._on_reply,
        )

    async def close(self) -> None:
        """End the session. This also ends the registration."""
        self._stopped = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._session is not None:
            await self._session.close()

    async def expire(self) -> None:
        """Make ZooKeeper expire the broker session (for chaos runs)."""
        await self._live.expire()

    async def has_start_up_paths(self, more: Sequence[str] = ()) -> bool:
        """True if a node has already created the znodes without which no broker can register."""
        paths = ("/brokers/ids", *more, *BRIDGEHEAD_PATHS)
        reads = [ReadChildren(path) for path in (*paths, CommitZnode.path, ClusterIdZnode.path)]
        return None not in await self._live.read(reads)

    async def is_registered(self, broker_id: int) -> bool:
        """Return whether a broker is registered. ZooKeeper knows this without a controller."""
        return await self._live.exists(BrokerIdZnode.path(broker_id)) is not None

    async def read_controller_id(self) -> int | None:
        """Return the broker that /controller names now; None if it names none or is not readable.

        A KRaft controller is no broker.

        Raises:
            ConnectionLostError: the connection broke.
        """
        session = self._live
        await session.sync()  # This server of the ensemble may lag behind.
        try:
            data = (await session.get(ControllerZnode.path)).data
            return None if ControllerZnode.is_krafts(data) else ControllerZnode.decode(data)
        except (ZooKeeperRejectedError, ZnodeContentError):
            return None

    async def cluster_id(self) -> str:
        """Return the cluster id, and serve only this cluster from now on.

        Raises:
            NoSuchZnodeError: no node has ever been started.
        """
        znode = await self._live.get(ClusterIdZnode.path)
        self._cluster_id = ClusterIdZnode.decode(znode.data)
        return self._cluster_id

    async def find_cluster_id(self) -> str | None:
        """Return the cluster id; None if no node has ever been started."""
        try:
            return ClusterIdZnode.decode((await self._live.get(ClusterIdZnode.path)).data)
        except NoSuchZnodeError:
            return None

    async def _serves_other_cluster(
        self, session: ZooKeeperSession, again: Callable[[], None]
    ) -> bool:
        """Return whether this broker's cluster is gone from ZooKeeper; a change calls `again`.

        Somebody may empty ZooKeeper and start other brokers there, now or soon. This broker must
        neither register with their controller nor follow it: it would delete all its logs.
        """
        if not self._cluster_id:
            return False
        path = ClusterIdZnode.path
        now = None
        if await session.exists(path, again) is not None:
            try:
                now = ClusterIdZnode.decode((await session.get(path)).data)
            except NoSuchZnodeError:
                pass
            except ZnodeContentError:
                return False  # In such a ZooKeeper no controller is elected.
        was_elsewhere, self._is_elsewhere = self._is_elsewhere, now != self._cluster_id
        if self._is_elsewhere and not was_elsewhere:
            problem = "is missing" if now is None else f"names the cluster {now}"
            text = "%s %s, but this broker belongs to %s: restore its data"
            _log.error(text, path, problem, self._cluster_id)
        return self._is_elsewhere

    async def register(self, registration: BrokerRegistration, address: NodeAddress) -> int:
        """Register this broker; return its epoch.

        If this broker was killed, its old registration exists until its old session expires. This
        method waits until then.

        Raises:
            RegistrationRejectedError: another live broker has this id, or ZooKeeper refused to
                create the znodes.
        """
        self._registration = Registration(registration, address)
        async with self._registering:
            return await self._register(self._registration)

    async def _register(self, registration: Registration) -> int:
        broker_id = registration.broker.broker_id
        deadline = asyncio.get_running_loop().time() + 2 * self._session_timeout_ms / 1000 + 1
        while True:
            session = self._live
            for parent in registration.parents:
                if await session.exists(parent) is None:
                    raise RegistrationRejectedError(
                        f"{parent} is missing, so broker {broker_id} cannot register: ZooKeeper "
                        "has lost metadata; restore its data"
                    )
            stats = [await session.exists(path) for path in registration.paths]
            if registration.is_intact(stats, session.session_id):
                return self._registered(registration, session, stats)
            foreign = registration.foreign(stats, session.session_id)
            if foreign is None:
                operations = registration.operations(stats, self._now_ms())
                result = await session.multi([session.encode(o) for o in operations])
                if result.failed_index is None:
                    continue
                if result.error_code not in (NODE_EXISTS, NO_NODE):
                    raise RegistrationRejectedError(
                        f"ZooKeeper refused the registration of broker {broker_id} "
                        f"(error {result.error_code})"
                    )
            if asyncio.get_running_loop().time() > deadline:
                raise RegistrationRejectedError(
                    f"broker {broker_id} is registered by another process: stop it, or give this "
                    f"one another broker.id"
                )
            if foreign is not None:
                await self._until_gone(session, foreign)

    def _registered(
        self, registration: Registration, session: ZooKeeperSession, stats: Sequence[Stat | None]
    ) -> int:
        """Report a new registration; return its broker epoch."""
        assert stats[0] is not None
        epoch, self._registered_in = stats[0].czxid, session
        if epoch != self._reported_epoch:
            self._reported_epoch = epoch
            self._log.append(
                BrokerRegistered(
                    broker_epoch=epoch,
                    incarnation=registration.address.incarnation,
                    session=f"0x{session.session_id:x}",
                )
            )
            self._callbacks.registered(epoch)
        return epoch

    async def _follow_registration(self) -> None:
        """Watch the registration. Register again in a new session or after a change by hand."""
        registration = self._registration
        if registration is None:
            return
        async with self._registering:
            while True:
                session, again = self._live, self._registration_changed
                if await self._serves_other_cluster(session, again):
                    return
                stats = [await session.exists(path, again) for path in registration.paths]
                if registration.is_intact(stats, session.session_id):
                    self._registered(registration, session, stats)
                    return
                if self._registered_in is session:
                    _log.warning("the registration was deleted or overwritten; registering again")
                    self._registered_in = None
                await self._register(registration)

    def _registration_changed(self) -> None:
        self._start(self._follow_registration)

    async def _until_gone(self, session: ZooKeeperSession, path: str) -> None:
        changed = asyncio.Event()
        if await session.exists(path, changed.set) is not None:
            try:
                async with asyncio.timeout(self._session_timeout_ms / 1000):
                    await changed.wait()
            except TimeoutError:
                return

    async def watch(self) -> None:
        """Read and watch registration, controller, configs, tokens, ACLs; call the callbacks."""
        self._is_watching = True
        await self._follow_registration()
        await self._read_controller()
        await self._follow_configs(connected=True)
        await self._follow_tokens()
        await self._follow_acls(connected=True)

    async def read_acls_and_tokens(self, zxid: int) -> None:
        """Read ACLs and tokens now, as of `zxid` or later, without waiting for their watches.

        Raises:
            ConnectionLostError: the connection broke. After the reconnect the watcher reads the
            same changes again.
        """
        session = self._live
        if session.last_zxid < zxid:
            await session.sync()  # This server of the ensemble may lag behind.
        if self._tokens is not None:
            await self._tokens.follow(session, None)
        if self._acls is not None:
            await self._acls.follow(session, None)

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        """Return the stored overrides of one entity, read from ZooKeeper.

        Invalid content counts as empty, as in Kafka. The error is added to `invalid`, or logged if
        `invalid` is None.
        """
        path = ConfigZnode.path(ConfigResource(entity_type, entity_name))
        try:
            return ConfigZnode.decode(path, (await self._live.get(path)).data)
        except NoSuchZnodeError:
            return {}
        except ZnodeContentError as wrong:
            if invalid is None:
                _log.error("%s", wrong)
            else:
                invalid.append(str(wrong))
            return {}

    async def read_topic(self, name: str) -> Topic | None:
        """Return a topic without its partition states; None if it is missing or invalid."""
        if not has_valid_path(name):
            return None
        try:
            content = TopicZnode.decode(name, (await self._live.get(TopicZnode.path(name))).data)
        except NoSuchZnodeError:
            return None
        except ZnodeContentError as wrong:
            _log.error("%s", wrong)
            return None
        assignment, topic_id, adding, removing = content
        return Topic(name, topic_id or b"", assignment, (), adding, removing)

    async def read_topic_names(self) -> frozenset[str]:
        """Return the names of all topics."""
        return frozenset(await self._live.children("/brokers/topics"))

    async def read_deletions(self) -> frozenset[str]:
        """Return the names of the topics that are marked for deletion."""
        return frozenset(await self._live.children("/admin/delete_topics"))

    async def read_log_times(
        self, logs: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Return the creation time of each partition that exists, in ms of ZooKeeper's clock."""
        paths = [PartitionZnode.path(topic, partition) for topic, partition in logs]
        znodes = await self._live.read([ReadData(path) for path in paths])
        return {
            log: znode.stat.ctime
            for log, znode in zip(logs, znodes, strict=True)
            if isinstance(znode, ZnodeData)
        }

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        """Return the stored overrides of all entities of a type.

        The type `users` includes the client ids of users.
        """
        stored = await read_configs(self._live.read, [entity_type])
        for text in stored.invalid:
            _log.error("%s", text)
        return stored.configs

    async def until_reply(self, step: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat a step until ZooKeeper answers, in this session or in a later one.

        The step must be safe to repeat, as a read, `register` and `watch` are.

        Raises:
            ConnectionLostError: the watcher was closed.
        """
        while True:
            try:
                return await step()
            except ConnectionLostError:
                if self._stopped:
                    raise
            await asyncio.sleep(_RETRY_S)

    # --- Watching ------------------------------------------------------------------------

    def _state_changed(self, state: SessionState) -> None:
        self._callbacks.session_changed(state)
        if self._stopped or self._session is None:
            return
        if state is SessionState.CONNECTED and self._is_watching:
            self._start(self.watch)
        elif state is SessionState.LOST:
            self._log.append(SessionLost(role="broker", session=f"0x{self._session.session_id:x}"))
            self._session = None
            self._start(self._begin_again)

    async def _begin_again(self) -> None:
        if self._session is None:
            await self.open()
        if self._is_watching:
            await self.watch()

    def _start(self, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step until it succeeds, or leave it to `watch` if only the connection broke."""

        async def persist() -> None:
            pause_s, rejection = _RETRY_S, ""
            while not self._stopped:
                try:
                    await step()
                except ConnectionLostError as lost:
                    if self._session is not None:
                        return  # After the reconnect `watch` reads what has changed.
                    _log.warning("ZooKeeper: %s; trying again", lost)
                except RegistrationRejectedError as error:
                    if str(error) != rejection:
                        _log.error("%s", error)
                    rejection = str(error)
                    pause_s = min(2 * pause_s, _RETRY_MAX_S)
                else:
                    return
                await asyncio.sleep(pause_s)

        task = asyncio.create_task(persist())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _controller_changed(self) -> None:
        self._start(self._read_controller)

    async def _follow_configs(self, *, connected: bool = False) -> None:
        again = partial(self._start, self._follow_configs)
        await self._configs.follow(self._live, again, connected=connected)

    async def _follow_tokens(self) -> None:
        if self._tokens is not None:
            await self._tokens.follow(self._live, lambda: self._start(self._follow_tokens))

    async def _follow_acls(self, *, connected: bool = False) -> None:
        if self._acls is not None:
            again = partial(self._start, self._follow_acls)
            await self._acls.follow(self._live, again, connected=connected)

    async def _read_controller(self) -> None:
        """Read and watch /controller and the znode of the node it names.

        Only one read runs at a time: a slow read must not report a controller after a later read
        has reported that there is none.
        """
        async with self._reading_controller:
            await self._read_and_report()

    async def _read_and_report(self) -> None:
        again = self._controller_changed
        session = self._live
        if await self._serves_other_cluster(session, again):
            self._report(None)
            return
        try:
            data, _ = await session.get(ControllerZnode.path, again)
        except NoSuchZnodeError:
            if await session.exists(ControllerZnode.path, again) is not None:
                again()
                return
            self._report(None)
            return
        try:
            broker_id = ControllerZnode.decode(data)
            is_kraft = ControllerZnode.is_krafts(data)
        except ZnodeContentError as error:
            _log.error("%s", error)
            self._report(None)
            return
        if is_kraft:
            self._report(ControllerAddress(broker_id, None, is_kraft=True))
            return
        self._report(ControllerAddress(broker_id, await self._node_address(broker_id, again)))

    async def _node_address(self, broker_id: int, again: Callable[[], None]) -> NodeAddress | None:
        """Return a node's address, None if it has no valid znode. A change calls `again`."""
        path = NodeZnode.path(broker_id)
        try:
            return NodeZnode.decode(path, (await self._live.get(path, again)).data)
        except NoSuchZnodeError:
            if await self._live.exists(path, again) is not None:
                again()  # The znode was created between the two reads.
        except ZnodeContentError as error:
            _log.error("%s", error)
        return None

    def _report(self, controller: ControllerAddress | None) -> None:
        # The watches on /controller and on the node's znode may both fire for one change, which
        # is reported once. A missing controller is always reported: /controller may have been
        # created and deleted between two reads.
        if controller is None or controller != self._reported:
            self._reported = controller
            self._callbacks.controller_changed(controller)

    async def catch_up(self) -> None:
        """Apply every change in ZooKeeper's current notifications.

        Raises:
            ConnectionLostError: the connection broke, so the notifications are not all applied.
        """
        await self._live.sync()
        await self._configs.follow(self._live, None)
        if self._tokens is not None:
            await self._tokens.follow(self._live, None)
        if self._acls is not None:
            await self._acls.follow(self._live, None)


def _config_follower(callbacks: Callbacks) -> ConfigFollower:
    read_in_full = {
        "users": callbacks.users_read,
        "clients": callbacks.client_ids_read,
        "ips": callbacks.ips_read,
    }
    return ConfigFollower(
        callbacks.config_changed,
        {entity_type: read for entity_type, read in read_in_full.items() if read is not None},
    )
