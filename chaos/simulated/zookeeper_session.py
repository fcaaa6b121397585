"""ZooKeeperSession over the simulated network, and the server's end of its connections.

The client behaves like `zookeeper_client.session` with kazoo. When the connection breaks, pending
requests fail and all watches fire. The client then tries to reconnect until it has a connection, or
until the server says that the session has expired.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, cast

from chaos.simulated.network import SimulatedConnection, SimulatedNetwork
from chaos.simulated.virtual_time import Callback, Process, current_process
from chaos.simulated.zookeeper import ServerSession, ZooKeeperModel
from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.operations import Operation
from zookeeper_client.session import READS_PER_REQUEST, NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import (
    MultiResult,
    Read,
    ReadResult,
    Stat,
    ZnodeData,
    encode_operation,
    open_acl,
)

TICK_S: Final = 0.5
_RECONNECT_S: Final = (0.05, 0.06)
_PING_JITTER_S: Final = (0.01, 0.4)
_STOP_S: Final = 10.0

Execute = Callable[[ServerSession], Any]  # executes a request; returns its result


@dataclass(frozen=True, slots=True)
class Multi:
    """The execution of a multi."""

    model: ZooKeeperModel
    operations: tuple[bytes, ...]

    def __call__(self, session: ServerSession) -> MultiResult:
        return self.model.multi(session, self.operations)


class LostCommit(NamedTuple):
    """A multi that is to be lost, or whose reply is to be lost."""

    loses_reply: bool
    done: asyncio.Future[None]


class ZooKeeperService:
    """The server behind the simulated network."""

    def __init__(self, network: SimulatedNetwork, now_ms: Callable[[], int], seed: int) -> None:
        self.network = network
        self.model = ZooKeeperModel(now_ms)
        self.source = random.Random(f"sessions {seed}")
        self.to_lose: dict[Process | None, LostCommit] = {}
        self._current: dict[int, SimulatedConnection] = {}  # by session id
        network.loop.call_later(TICK_S, self._tick, context=network.context)

    def _tick(self) -> None:
        before = tuple(self.model.sessions)
        self.model.expire_sessions(self.network.loop.time())
        for session_id in before:
            if session_id not in self.model.sessions:
                self._disconnect(session_id)
        self.network.loop.call_later(TICK_S, self._tick, context=self.network.context)

    def _disconnect(self, session_id: int) -> None:
        if (connection := self._current.pop(session_id, None)) is not None:
            connection.replies.send(connection.on_client_reset)

    def connect(self, connection: SimulatedConnection, client: _Client, session_id: int) -> None:
        """Open a session (id 0), or continue one on a new connection."""
        now_s = self.network.loop.time()
        if session_id == 0:
            session = self.model.open_session(client.timeout_s, now_s)
        elif (existing := self.model.sessions.get(session_id)) is not None:
            session = existing
            self._disconnect(session_id)  # The session moves to this connection.
        else:
            connection.replies.send(client.expired, connection)
            return
        session.heard_s = now_s
        session.forget_watches()
        session.notify = lambda kind, path: connection.replies.send(
            client.notified, connection, kind, path, self.model.zxid
        )
        self._current[session.id] = connection
        connection.replies.send(client.connected, connection, session.id)

    def disconnected(self, connection: SimulatedConnection, session_id: int) -> None:
        """The client's connection is closed or broken; this does not end the session."""
        if self._current.get(session_id) is connection:
            del self._current[session_id]
            if (session := self.model.sessions.get(session_id)) is not None:
                session.notify = None
                session.forget_watches()

    def handle(
        self,
        connection: SimulatedConnection,
        client: _Client,
        session_id: int,
        execute: Execute,
        *,
        may_lose: bool,
    ) -> None:
        """Execute one request, if the session still uses this connection."""
        session = self.model.sessions.get(session_id)
        if session is None or self._current.get(session_id) is not connection:
            return
        lost = self.to_lose.pop(connection.client, None) if may_lose else None
        if lost is not None and not lost.loses_reply:
            self._lose(session_id, lost)
            return
        session.heard_s = self.network.loop.time()
        result = execute(session)
        if lost is not None:
            self._lose(session_id, lost)
            return
        connection.replies.send(client.replied, connection, result, self.model.zxid)

    def _lose(self, session_id: int, lost: LostCommit) -> None:
        self._disconnect(session_id)
        if not lost.done.done():
            lost.done.set_result(None)

    def end_session(self, session_id: int) -> None:
        """Close a session because its client asks for it, or because a fault expires it."""
        self.model.close_session(session_id)
        self._disconnect(session_id)


class _Pending(NamedTuple):
    sent_s: float
    future: asyncio.Future[Any] | None = None  # None: a ping
    on_result: Callable[[Any], None] | None = None


class _Client:
    """The client's end of one session: connections, pending requests, watches, pings."""

    def __init__(
        self,
        service: ZooKeeperService,
        timeout_s: float,
        announce: Callable[[SessionState], None],
        on_reply: Callable[[float], None],
    ) -> None:
        self._service = service
        self._loop = service.network.loop
        self.timeout_s = timeout_s
        self._announce = announce
        self._on_reply = on_reply
        self._process = current_process()
        self._connection: SimulatedConnection | None = None
        self._is_connected = False
        self._has_stopped = False
        self._pending: deque[_Pending] = deque()
        self._watches: dict[tuple[str, str], dict[Callable[[], None], None]] = {}
        self.below: dict[str, Callable[[str], None]] = {}  # persistent watches, by path
        self._timer: Callback | None = None
        self._heard = False
        self.session_id = 0
        self.last_zxid = 0
        self.last_contact_s = self._loop.time()

    def connect(self) -> None:
        """Open a connection; the session begins or continues on it."""
        if self._has_stopped:
            return
        name = "the harness" if self._process is None else self._process.name
        network = self._service.network
        connection = SimulatedConnection(network, f"zookeeper of {name}", self._process, None)
        connection.on_client_reset = lambda: self._broken(connection)
        connection.on_server_reset = lambda: self._service.disconnected(connection, self.session_id)
        self._connection = connection
        self._connect_sent_s = self._loop.time()
        connection.requests.send(self._service.connect, connection, self, self.session_id)
        self._timer = self._loop.call_later(self.timeout_s, self._broken, connection)

    def connected(self, connection: SimulatedConnection, session_id: int) -> None:
        """The server accepted the session."""
        if connection is not self._connection:
            return
        self._is_connected = True
        self.session_id = session_id
        self.last_contact_s = self._connect_sent_s
        self._schedule_ping()
        self._announce(SessionState.CONNECTED)

    def expired(self, connection: SimulatedConnection) -> None:
        """The server does not know the session any more."""
        if connection is self._connection:
            self._has_stopped = True
            self._drop()
            self._announce(SessionState.LOST)

    def _broken(self, connection: SimulatedConnection) -> None:
        """The connection is gone; reconnect."""
        if connection is not self._connection:
            return
        was_connected = self._is_connected
        self._drop()
        if was_connected:
            self._announce(SessionState.SUSPENDED)
        self._loop.call_later(self._service.source.uniform(*_RECONNECT_S), self.connect)

    def _drop(self) -> None:
        """Close the connection; fail what is pending, and fire every watch."""
        connection, self._connection = self._connection, None
        self._is_connected = False
        self.below.clear()
        if self._timer is not None:
            self._timer.cancel()
        if connection is None:
            return
        connection.close()
        connection.requests.send(self._service.disconnected, connection, self.session_id)
        if self._pending and not self._has_stopped:
            self._announce(SessionState.SUSPENDED)
        pending, self._pending = self._pending, deque()
        for request in pending:
            if request.future is not None and not request.future.done():
                request.future.set_exception(ConnectionLostError())
        watches, self._watches = self._watches, {}
        for calls in watches.values():
            for call in calls:
                self._loop.call_soon(call)

    # --- Requests --------------------------------------------------------------------------------

    def request(
        self,
        execute: Execute,
        *,
        may_lose: bool = False,
        on_result: Callable[[Any], None] | None = None,
    ) -> asyncio.Future[Any]:
        """Send a request; return the future of its result. Needs a connection."""
        future: asyncio.Future[Any] = self._loop.create_future()
        pending = _Pending(self._loop.time(), future, on_result)
        self._submit(pending, execute, may_lose=may_lose)
        return future

    def _submit(self, pending: _Pending, execute: Execute, *, may_lose: bool = False) -> None:
        connection = self._connection
        assert connection is not None
        self._pending.append(pending)
        connection.requests.send(
            partial(self._service.handle, may_lose=may_lose),
            connection,
            self,
            self.session_id,
            execute,
        )

    def replied(self, connection: SimulatedConnection, result: Any, zxid: int) -> None:
        """A reply arrived. Replies have the order of the requests."""
        if connection is not self._connection:
            return
        self._heard = True
        self.last_zxid = zxid
        pending = self._pending.popleft()
        self.last_contact_s = pending.sent_s
        if pending.future is None:
            return
        self._on_reply((self._loop.time() - pending.sent_s) * 1000)
        if pending.on_result is not None:
            pending.on_result(result)
        if not pending.future.done():
            pending.future.set_result(result)

    def notified(self, connection: SimulatedConnection, kind: str, path: str, zxid: int) -> None:
        """A watch fired."""
        if connection is self._connection:
            self._heard = True
            self.last_zxid = max(self.last_zxid, zxid)
            for root, changed in list(self.below.items()):
                if kind == "below" and f"{path}/".startswith(f"{root}/"):
                    changed(path)
            for call in self._watches.pop((kind, path), {}):
                call()

    def watch(self, kind: str, path: str, call: Callable[[], None]) -> None:
        """Call `call` once when the watch fires or the connection breaks."""
        self._watches.setdefault((kind, path), {})[call] = None

    def _schedule_ping(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        pause_s = self.timeout_s / 3 - self._service.source.uniform(*_PING_JITTER_S)
        self._heard = False
        self._timer = self._loop.call_later(max(pause_s, 0.01), self._ping)

    def _ping(self) -> None:
        """Send a ping unless one is unanswered. If nothing has arrived since then, reconnect."""
        connection = self._connection
        if connection is None:
            return
        has_ping = any(request.future is None for request in self._pending)
        if has_ping and not self._heard:
            self._broken(connection)
            return
        if not has_ping:
            self._submit(_Pending(self._loop.time()), lambda _session: None)
        self._schedule_ping()

    async def stop(self) -> None:
        """End the session if there is a connection; otherwise let the server expire it."""
        self._has_stopped = True
        if self._is_connected:
            done = self.request(lambda session: self._service.end_session(session.id))
            await asyncio.wait((done,), timeout=_STOP_S)
            if done.done():
                done.exception()
        self._drop()


class SimulatedSession(ZooKeeperSession):
    """See ZooKeeperSession."""

    def __init__(  # without super().__init__, which would create a kazoo client
        self,
        service: ZooKeeperService,
        *,
        session_timeout_ms: int,
        on_state: Callable[[SessionState], None],
        on_reply: Callable[[float], None] = lambda _latency_ms: None,
        writes_metadata: bool = False,
    ) -> None:
        """`writes_metadata`: faults may lose the multis of this session."""
        self._writes_metadata = writes_metadata
        self._service = service
        self._on_state = on_state
        self.session_timeout_ms = session_timeout_ms
        self.state = SessionState.SUSPENDED
        self._connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._simulated = _Client(
            service, session_timeout_ms / 1000, self._state_changed_to, on_reply
        )

    @property
    def session_id(self) -> int:
        return self._simulated.session_id

    @property
    def last_contact_s(self) -> float:
        return self._simulated.last_contact_s

    @property
    def granted_timeout_ms(self) -> float:
        return self.session_timeout_ms

    @property
    def last_zxid(self) -> int:
        return self._simulated.last_zxid

    async def open(self, timeout_s: float) -> None:
        self._simulated.connect()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._connected)
        except TimeoutError:
            await self.close()
            raise ConnectionLostError(f"no ZooKeeper answered within {timeout_s:g} s") from None

    async def close(self) -> None:
        self.state = SessionState.LOST
        await self._simulated.stop()

    async def expire(self) -> None:
        await asyncio.sleep(self._service.source.uniform(*_RECONNECT_S))
        self._service.end_session(self.session_id)

    def _state_changed_to(self, state: SessionState) -> None:
        if self.state in (SessionState.LOST, state):
            return
        self.state = state
        if state is SessionState.CONNECTED and not self._connected.done():
            self._connected.set_result(None)
        self._on_state(state)

    async def _ask(
        self,
        execute: Execute,
        *,
        may_lose: bool = False,
        on_result: Callable[[Any], None] | None = None,
    ) -> Any:
        if self.state is not SessionState.CONNECTED:
            raise self._lost()
        try:
            return await self._simulated.request(execute, may_lose=may_lose, on_result=on_result)
        except ConnectionLostError as lost:
            raise self._lost() from lost

    def _lost(self) -> ConnectionLostError:
        if self.state is SessionState.LOST:
            return SessionLostError("the ZooKeeper session is lost")
        return ConnectionLostError("the connection to ZooKeeper broke")

    async def get(self, path: str, watch: Callable[[], None] | None = None) -> ZnodeData:
        model, sets = self._service.model, watch is not None
        znode = await self._ask(
            lambda session: model.get(session, path, watch=sets),
            on_result=self._setting("data", path, watch),
        )
        if znode is None:
            raise NoSuchZnodeError
        return cast(ZnodeData, znode)

    async def exists(self, path: str, watch: Callable[[], None] | None = None) -> Stat | None:
        model, sets = self._service.model, watch is not None
        stat = await self._ask(
            lambda session: model.exists(session, path, watch=sets),
            on_result=self._setting("data", path, watch, if_missing=True),
        )
        return cast(Stat | None, stat)

    async def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        model, sets, path = self._service.model, watch is not None, path or "/"
        children = await self._ask(
            lambda session: model.children(session, path, watch=sets),
            on_result=self._setting("child", path, watch),
        )
        if children is None:
            raise NoSuchZnodeError
        return cast(list[str], children)

    async def watch_below(self, path: str, changed: Callable[[str], None]) -> None:
        model, below = self._service.model, self._simulated.below
        below[path] = changed
        try:
            await self._ask(lambda session: model.watch_below(session, path))
        except BaseException:
            below.pop(path, None)
            raise

    def watches_below(self, path: str) -> bool:
        return path in self._simulated.below

    def _setting(
        self,
        kind: str,
        path: str,
        watch: Callable[[], None] | None,
        *,
        if_missing: bool = False,
    ) -> Callable[[Any], None] | None:
        """Return a function that sets a watch when the reply arrives, before the watch can fire."""
        if watch is None:
            return None

        def set_watch(reply: Any) -> None:
            if if_missing or reply is not None:
                self._simulated.watch(kind, path, watch)

        return set_watch

    async def sync(self) -> None:
        await self._ask(lambda _session: None)

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        chunks = [
            tuple(reads[start : start + READS_PER_REQUEST])
            for start in range(0, len(reads), READS_PER_REQUEST)
        ]
        replies = await asyncio.gather(
            *(self._ask(partial(_read, self._service.model, chunk)) for chunk in chunks)
        )
        return [result for reply in replies for result in reply]

    def encode(self, operation: Operation) -> bytes:
        return encode_operation(operation, "", open_acl)

    async def multi(self, operations: Sequence[bytes]) -> MultiResult:
        execute = Multi(self._service.model, tuple(operations))
        return cast(MultiResult, await self._ask(execute, may_lose=self._writes_metadata))

    async def create_root(self) -> None:
        """Do nothing: the model has no chroot."""


def _read(model: ZooKeeperModel, reads: Sequence[Read], _session: ServerSession) -> Any:
    return model.read(reads)
