"""One ZooKeeper session on the asyncio loop.

kazoo connects and pings on its own thread. Replies and watch events reach the loop through one
queue, in the order of arrival. With the two threads of kazoo's default handler, a reply can
overtake an older watch event. If the loop is blocked for some seconds, kazoo's thread stops
pinging: a blocked node must lose its session, so that another controller is elected.

A lost session is not replaced automatically. kazoo would open a new session, in which a superseded
controller would continue to write. Here the client stops, and its owner can open another session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Watch
from kazoo.retry import KazooRetry

from cluster_model.session_state import (
    ConnectionLostError,
    SessionLostError,
    SessionState,
    ZooKeeperRejectedError,
)
from cluster_model.znodes.access import OPEN_ACCESS, ZnodeAcl, ZooKeeperAccess
from cluster_model.znodes.operations import Create, Operation
from zookeeper_client.tls_handler import TlsHandler
from zookeeper_client.wire import (
    AddWatch,
    MultiRead,
    MultiResult,
    PrebuiltMulti,
    Read,
    ReadDenied,
    ReadResult,
    Stat,
    ZnodeData,
    encode_acl,
    encode_operation,
)

_log = logging.getLogger(__name__)
# Requests of 50 to 2,000 reads are equally fast. The reply to 20,000 reads exceeds jute.maxbuffer.
READS_PER_REQUEST: Final = 500
_RECONNECT_DELAY_S: Final = 0.05
_STOP_S: Final = 10.0
_STOP_UNCONNECTED_S: Final = 1.0
_POLL_S: Final = 0.1
_LOST_WITHIN_S: Final = 2.0  # after the session was closed from another connection
_TAKEN_OVER_WITHIN_S: Final = 5.0
_EXPIRE_ATTEMPTS: Final = 5
_PING_XID: Final = -2
LOOP_BLOCKED_MAX_S: Final = 5.0


class NoSuchZnodeError(ZooKeeperRejectedError):
    """The znode does not exist."""


class _Watcher(NamedTuple):
    """A watch. kazoo stores watches in a set, so equal watches are called only once."""

    call: Callable[[], None]

    def __call__(self, _event: Any) -> None:
        self.call()


class _LoopQueue:
    """kazoo's callback queue: runs callbacks on the asyncio loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, function: Callable[[], Any]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop is closed, because the process is ending.
            _log.debug("a reply arrived after the loop had closed")


class _LoopHandler(TlsHandler):
    """kazoo's handler without worker threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> None:
        super().__init__(tls)
        self.callback_queue = self.completion_queue = _LoopQueue(loop)

    @property
    def running(self) -> bool:
        return True

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False


_NO_REPLY: Final = (ConnectionLoss, ConnectionClosedError, SessionExpiredError)


class _LoopWatch:
    """Observes from another thread whether the event loop runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asked_s = 0.0
        self._has_run = threading.Event()
        self._has_run.set()

    def wait_if_blocked(self, is_stopped: Callable[[], bool]) -> None:
        """Return at once if the loop has run recently. Otherwise wait until it runs.

        The wait also ends when `is_stopped` returns True.
        """
        now_s = time.monotonic()
        if self._has_run.is_set():
            self._asked_s = now_s
            self._has_run.clear()
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._has_run.set)
        elif now_s - self._asked_s > LOOP_BLOCKED_MAX_S:
            _log.warning("the event loop is blocked: this session is no longer kept alive")
            while not (is_stopped() or self._has_run.wait(_POLL_S)):
                pass


class _Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    """Pings only while the event loop runs, and records when the last answered request was *sent*.

    When a paused process resumes, it reads old replies from its socket. These do not show that the
    session is still alive. The time when the request was sent shows how old a reply may be.
    `granted_ms` is the session timeout that ZooKeeper granted.
    """

    def __init__(self, loop_watch: _LoopWatch, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._loop_watch = loop_watch
        self.last_contact_s = time.monotonic()
        self.granted_ms = math.inf
        self._sent_s: deque[float] = deque()
        self._pinged = self.last_contact_s
        # Called on the event loop with the path of each watch event, before kazoo's own watches.
        self.on_event: Callable[[str], None] = lambda _path: None

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        event, _ = Watch.deserialize(buffer, offset)
        self.client.handler.completion_queue.put(partial(self.on_event, event.path))
        super()._read_watch_event(buffer, offset)

    def _connect(self, *arguments: Any) -> Any:
        sent_s = time.monotonic()
        self._sent_s.clear()
        result = super()._connect(*arguments)
        self.last_contact_s = sent_s
        read_timeout_ms, _ = result  # two thirds of the session timeout
        self.granted_ms = read_timeout_ms * 3 / 2
        return result

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        if xid == _PING_XID:
            self._loop_watch.wait_if_blocked(self.client._stopped.is_set)
            self._pinged = time.monotonic()
        elif xid is not None and xid > 0:
            self._sent_s.append(time.monotonic())
        super()._submit(request, timeout, xid)

    def _read_header(self, timeout: float) -> Any:
        reply = super()._read_header(timeout)
        xid = reply[0].xid
        if xid == _PING_XID:
            self.last_contact_s = self._pinged
        elif xid > 0 and self._sent_s:
            self.last_contact_s = self._sent_s.popleft()
        return reply


class ZooKeeperSession:
    """One ZooKeeper session. Use it only from the thread of the event loop."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        on_state: Callable[[SessionState], None],
        access: ZooKeeperAccess = OPEN_ACCESS,
        on_reply: Callable[[float], None] = lambda _latency_ms: None,
    ) -> None:
        """`on_reply` is called after the reply to each read or write, with its latency in ms."""
        self._loop = asyncio.get_running_loop()
        hosts, slash, chroot = connect.partition("/")
        self._chroot = slash + chroot if chroot else ""
        self._on_state = on_state
        self._on_reply = on_reply
        self._tls = access.tls
        self._acl_of = lambda path: encode_acl(access.acl_of(path))
        self.session_timeout_ms = session_timeout_ms
        self.state = SessionState.SUSPENDED
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._lost_event = asyncio.Event()
        self._session_id = 0
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            handler=_LoopHandler(self._loop, access.tls),
            # Without jitter: kazoo multiplies each delay with it, so the delays would shrink to 0.
            connection_retry=KazooRetry(
                max_tries=-1, delay=_RECONNECT_DELAY_S, backoff=1, max_jitter=0
            ),
            randomize_hosts=True,
            auth_data=[("digest", access.credential.text)] if access.credential else None,
        )
        self._connection = _Connection(
            _LoopWatch(self._loop),
            self._client,
            self._client._conn_retry.copy(),
            logger=self._client.logger,
        )
        self._connection.on_event = self._event
        self._client._connection = self._connection
        # The callbacks of `watch_below`, by path. The server forgets them with the connection.
        self._below: dict[str, Callable[[str], None]] = {}
        self._client.add_listener(self._state_changed)

    @property
    def session_id(self) -> int:
        """ZooKeeper's session id (unsigned 64 bit). kazoo forgets the id of a lost session."""
        return self._session_id

    @property
    def last_contact_s(self) -> float:
        """Monotonic time in seconds at which the last answered request was sent."""
        return self._connection.last_contact_s

    @property
    def granted_timeout_ms(self) -> float:
        """The shorter of the requested session timeout and the one that ZooKeeper granted."""
        return min(self.session_timeout_ms, self._connection.granted_ms)

    @property
    def last_zxid(self) -> int:
        """The highest zxid in any reply of this session."""
        return cast(int, self._client.last_zxid)

    async def open(self, timeout_s: float) -> None:
        """Connect.

        Raises:
            ConnectionLostError: no server answered within `timeout_s`.
        """
        self._client.start_async()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._connected)
        except TimeoutError:
            await self.close()
            rejection = self._client.handler.rejection
            detail = f": the TLS handshake failed ({rejection})" if rejection else ""
            raise ConnectionLostError(
                f"no ZooKeeper answered within {timeout_s:g} s{detail}"
            ) from None
        except asyncio.CancelledError:
            self._begin_to_stop()  # Otherwise kazoo would open the session later.
            raise

    async def close(self) -> None:
        """End the session at the server, which removes its ephemeral znodes.

        Without a connection this waits at most `_STOP_UNCONNECTED_S`, because kazoo's attempt to
        connect may take as long as the session timeout.
        """
        is_connected = self.state is SessionState.CONNECTED
        ended = self._begin_to_stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if is_connected else _STOP_UNCONNECTED_S):
                await ended.wait()

    def _begin_to_stop(self) -> asyncio.Event:
        """Stop kazoo in a thread that does not delay the end of the process."""
        self.state = SessionState.LOST
        self._lost_event.set()
        ended = asyncio.Event()

        def stop() -> None:
            try:
                self._stop()
            finally:
                with contextlib.suppress(RuntimeError):  # The loop is closed.
                    self._loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=stop, name="ZooKeeper session ends", daemon=True).start()
        return ended

    def _stop(self) -> None:
        self._client.stop()
        # After a lost session, kazoo's `stop` does not wait for kazoo's thread. But kazoo's `close`
        # requires that the thread has ended.
        if self._connection.stop(_STOP_S):
            self._client.close()

    def _state_changed(self, state: str) -> None:
        # Runs on kazoo's thread, so that kazoo stops before it replaces a lost session.
        if state == KazooState.LOST:
            self._client._stopped.set()
        self._client.handler.completion_queue.put(lambda: self._announce(state))

    def _announce(self, state: str) -> None:
        announced = {
            KazooState.CONNECTED: SessionState.CONNECTED,
            KazooState.SUSPENDED: SessionState.SUSPENDED,
            KazooState.LOST: SessionState.LOST,
        }[state]
        if self.state in (SessionState.LOST, announced):
            return
        self.state = announced
        if self.state is not SessionState.CONNECTED:
            self._below.clear()
        if self.state is SessionState.LOST:
            self._lost_event.set()
        elif self.state is SessionState.CONNECTED:
            self._session_id = (self._client._session_id or self._session_id) & (2**64 - 1)
        if self.state is SessionState.CONNECTED and not self._connected.done():
            self._connected.set_result(None)
        self._on_state(self.state)

    async def expire(self) -> None:
        """Expire this session: a second connection takes the session over and closes it.

        If this session's client is reconnecting at that moment, it takes the session back. So both
        steps are repeated until the session is lost.

        Raises:
            ConnectionLostError: no attempt succeeded. The session may still be lost later.
        """
        for _ in range(_EXPIRE_ATTEMPTS):
            if self.state is SessionState.LOST:
                return
            other = KazooClient(
                hosts=",".join(f"{host}:{port}" for host, port in self._client.hosts),
                timeout=self.session_timeout_ms / 1000,
                client_id=self._client.client_id,
                handler=TlsHandler(self._tls),
            )
            try:
                await asyncio.to_thread(other.start, _TAKEN_OVER_WITHIN_S)
            except KazooTimeoutError:
                # There was no connection in time, or this session's client took the session back
                # at once. kazoo has closed the other client.
                await asyncio.sleep(_RECONNECT_DELAY_S)
                continue
            await asyncio.to_thread(other.stop)
            await asyncio.to_thread(other.close)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOST_WITHIN_S):
                    await self._lost_event.wait()
        if self.state is not SessionState.LOST:
            raise ConnectionLostError(
                f"the session was still there after {_EXPIRE_ATTEMPTS} attempts to end it"
            )

    async def _send(self, request: Any) -> Any:
        if self.state is not SessionState.CONNECTED:
            # kazoo would queue the request and send it after a reconnect.
            raise self._lost()
        future: asyncio.Future[Any] = self._loop.create_future()
        result = self._client.handler.async_result()
        result.rawlink(self._settling(future))
        self._client._call(request, result)
        return await self._reply(future)

    def _settling(self, future: asyncio.Future[Any]) -> Callable[[Any], None]:
        """Return the callback for the reply to a request that is sent now."""
        sent_s = time.monotonic()

        def settle(done: Any) -> None:
            if not isinstance(done.exception, _NO_REPLY):
                self._on_reply((time.monotonic() - sent_s) * 1000)
            self._settle(future, done)

        return settle

    def _settle(self, future: asyncio.Future[Any], done: Any) -> None:
        if isinstance(done.exception, ConnectionLoss):
            # kazoo fails pending requests before it reports that the connection is suspended, but
            # the callers of these requests must already see the new state.
            self._announce(KazooState.SUSPENDED)
        if future.done():
            return
        if done.exception is None:
            future.set_result(done.value)
        else:
            future.set_exception(done.exception)

    async def _reply(self, future: asyncio.Future[Any]) -> Any:
        try:
            return await future
        except NoNodeError as missing:
            raise NoSuchZnodeError from missing
        except _NO_REPLY as lost:
            raise self._lost() from lost
        except KazooException as error:
            raise ZooKeeperRejectedError(type(error).__name__) from error

    def _lost(self) -> ConnectionLostError:
        if self.state is SessionState.LOST:
            return SessionLostError("the ZooKeeper session is lost")
        return ConnectionLostError("the connection to ZooKeeper broke")

    async def _watchable(
        self, start: Callable[[Any], Any], watch: Callable[[], None] | None
    ) -> Any:
        if self.state is not SessionState.CONNECTED:
            raise self._lost()
        future: asyncio.Future[Any] = self._loop.create_future()
        settle = self._settling(future)
        start(_Watcher(watch) if watch else None).rawlink(settle)
        return await self._reply(future)

    async def get(self, path: str, watch: Callable[[], None] | None = None) -> ZnodeData:
        """Return a znode's data; `watch` is called once at the znode's next change.

        Raises:
            NoSuchZnodeError: the znode does not exist. No watch has been set.
            ConnectionLostError: the connection broke. The watch may or may not be set.
        """
        data, stat = await self._watchable(
            lambda watcher: self._client.get_async(self._chroot + path, watcher), watch
        )
        return ZnodeData(data, _stat(stat).pack())

    async def exists(self, path: str, watch: Callable[[], None] | None = None) -> Stat | None:
        """Return a znode's stat, None if it is missing; `watch` is called at its next change."""
        stat = await self._watchable(
            lambda watcher: self._client.exists_async(self._chroot + path, watcher), watch
        )
        return None if stat is None else _stat(stat)

    async def sync(self) -> None:
        """Wait until this session's server has applied all earlier writes."""
        if self.state is not SessionState.CONNECTED:
            raise self._lost()
        future: asyncio.Future[Any] = self._loop.create_future()
        done = self._client.sync_async(self._chroot or "/")
        done.rawlink(lambda result: self._settle(future, result))
        await self._reply(future)

    async def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """Return the names of a znode's children; `watch` is called once when the names change."""
        names = await self._watchable(
            lambda watcher: self._client.get_children_async(self._chroot + (path or "/"), watcher),
            watch,
        )
        return cast(list[str], names)

    async def watch_below(self, path: str, changed: Callable[[str], None]) -> None:
        """Call `changed` with the path of each znode that is created, written or deleted.

        `path` itself, which need not exist, and all znodes below it are watched. The watch lasts
        until the connection breaks; then nothing is called. It replaces an earlier one on `path`.

        Raises:
            ConnectionLostError: the connection broke. There is no watch.
        """
        self._below[path] = changed  # An event may arrive directly after the reply.
        try:
            await self._send(AddWatch(self._chroot + path))
        except BaseException:
            self._below.pop(path, None)
            raise

    def watches_below(self, path: str) -> bool:
        """Return whether `watch_below` watches this path on the current connection."""
        return path in self._below

    def _event(self, path: str) -> None:
        path = path.removeprefix(self._chroot)
        for parent, changed in list(self._below.items()):
            if path == parent or path.startswith(parent + "/"):
                changed(path)

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        """Read many znodes, `READS_PER_REQUEST` per request; the results are in the same order.

        Reads in the same request see one state of ZooKeeper. Different requests may see different
        states.
        """
        return cast(list[ReadResult], await self._read(reads, may_be_denied=False))

    async def read_allowed(self, reads: Sequence[Read]) -> list[ReadResult | ReadDenied]:
        """Read as `read` does; a znode that this session may not read is ReadDenied."""
        return await self._read(reads, may_be_denied=True)

    async def _read(
        self, reads: Sequence[Read], *, may_be_denied: bool
    ) -> list[ReadResult | ReadDenied]:
        requests = [
            MultiRead(
                reads[start : start + READS_PER_REQUEST], self._chroot, may_be_denied=may_be_denied
            )
            for start in range(0, len(reads), READS_PER_REQUEST)
        ]
        replies = await asyncio.gather(*map(self._send, requests))
        return [result for reply in replies for result in reply]

    async def acl(self, path: str) -> tuple[ZnodeAcl, ...] | None:
        """Return a znode's ACL; None if it does not exist or this session may not read it."""
        try:
            entries, _ = await self._watchable(
                lambda _watcher: self._client.get_acls_async(self._chroot + path), None
            )
        except ZooKeeperRejectedError:
            return None
        return tuple(ZnodeAcl(entry.perms, entry.id.scheme, entry.id.id) for entry in entries)

    def encode(self, operation: Operation) -> bytes:
        """Return an operation's bytes, for `multi`."""
        return encode_operation(operation, self._chroot, self._acl_of)

    async def multi(self, operations: Sequence[bytes]) -> MultiResult:
        """Execute all operations, or none.

        Raises:
            ConnectionLostError: the operations may or may not have been executed.
            ZooKeeperRejectedError: no operation was executed. For example, the session was moved.
        """
        (result,) = await self._send(PrebuiltMulti(operations, lambda: self._client.last_zxid))
        return cast(MultiResult, result)

    async def create_root(self) -> None:
        """Create the znodes of the chroot, as Kafka does at start."""
        parts = [part for part in self._chroot.split("/") if part]
        path = ""
        for part in parts:
            path += "/" + part
            operation = encode_operation(Create(path), "", self._acl_of)
            await self.multi([operation])  # This changes nothing if the znode exists.


def _stat(stat: Any) -> Stat:
    return Stat._make(stat)
