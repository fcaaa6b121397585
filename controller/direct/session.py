"""The ZooKeeper session with which a broker below the bridge release writes directly.

Such a write has no controller epoch and no fence: the versions of the znodes detect concurrent
writes. The first operation of each multi writes the outcomes into the session's own znode, if this
znode still has the known version. So a multi whose reply is lost can be resent: if the first copy
was applied, the second copy fails. In ZooKeeper's transaction log, the outcomes also show which
request made each write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from cluster_model.direct_writes import DirectWriterZnode
from cluster_model.session_state import (
    ConnectionLostError,
    SessionLostError,
    SessionState,
    ZooKeeperRejectedError,
)
from cluster_model.znodes.access import ZooKeeperAccess
from cluster_model.znodes.operations import Create, Operation, SetData
from controller.store.port import ContentConflictError, UnknownOutcomeError
from event_log.events import SessionLost, SessionOpened
from event_log.writer import EventLog
from zookeeper_client.session import ZooKeeperSession
from zookeeper_client.wire import MultiResult, Read, ReadResult


class DirectSession:
    """A ZooKeeper session. The first call opens it; after a loss the next call opens a new one."""

    def __init__(
        self,
        connect: str,
        *,
        broker_id: int,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        access: ZooKeeperAccess,
        log: EventLog,
        on_reply: Callable[[float], None],
    ) -> None:
        """`on_reply`: see ZooKeeperSession."""
        self._connect = connect
        self._broker_id = broker_id
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._access = access
        self._on_reply = on_reply
        self._log = log
        self._session: ZooKeeperSession | None = None
        self._znode = ""
        self._version = 0
        self._reconnected = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[int]] = set()

    async def open(self) -> ZooKeeperSession:
        """Return the session; open one if there is none. Raises ConnectionLostError."""
        if self._session is not None:
            return self._session
        async with self._turn:
            return await self._opened()

    async def _opened(self) -> ZooKeeperSession:
        if self._session is None:
            session = self._new_session(lambda state: self._state_changed(session, state))
            await session.open(self._connection_timeout_ms / 1000)
            try:
                await self._announce(session)
            except BaseException:
                await session.close()
                raise
            self._session = session
        return self._session

    def _new_session(self, on_state: Callable[[SessionState], None]) -> ZooKeeperSession:
        return ZooKeeperSession(
            self._connect,
            session_timeout_ms=self._session_timeout_ms,
            on_state=on_state,
            access=self._access,
            on_reply=self._on_reply,
        )

    async def _announce(self, session: ZooKeeperSession) -> None:
        """Record the session in the event log and in ZooKeeper, before its first write."""
        name = f"0x{session.session_id:x}"
        self._log.append(SessionOpened(role="direct", session=name))
        self._log.flush()
        self._znode, self._version = DirectWriterZnode.path(self._broker_id, name), 0
        result = await session.multi([session.encode(Create(self._znode, b"", ephemeral=True))])
        if result.failed_index is not None:
            raise ZooKeeperRejectedError(f"{self._znode}: error {result.error_code}")

    def _state_changed(self, session: ZooKeeperSession, state: SessionState) -> None:
        if state is SessionState.SUSPENDED:
            self._reconnected.clear()
        else:
            self._reconnected.set()
        if state is SessionState.LOST:
            self._log.append(SessionLost(role="direct", session=f"0x{session.session_id:x}"))
            if self._session is session:
                self._session = None

    async def close(self) -> None:
        """End the session; its ephemeral znode is deleted."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self._reconnected.set()  # A waiting write now sees that the session is lost.

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        """Read many znodes. Raises ConnectionLostError."""
        return await (await self.open()).read(reads)

    async def last_zxid(self) -> int:
        """Return the highest zxid in any reply of the session. Raises ConnectionLostError."""
        return (await self.open()).last_zxid

    async def encode(self, operations: Sequence[Operation]) -> list[bytes]:
        """Return the operations' bytes. Raises ConnectionLostError."""
        session = await self.open()
        return [session.encode(operation) for operation in operations]

    async def write(self, outcomes: bytes, operations: Sequence[bytes]) -> int:
        """Execute all operations or none; return the zxid.

        Raises:
            ContentConflictError: a concurrent write changed a version; nothing was written.
            UnknownOutcomeError: the session was lost with the multi in flight, the connection broke
                while the result was read, or another process changed the session's znode.
            ConnectionLostError: no session could be opened; nothing was written.
        """
        # A task, so that `_version` is incremented even if the caller is cancelled.
        task = asyncio.create_task(self._write(outcomes, operations))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Otherwise asyncio logs the exception if the caller was cancelled.

    async def _write(self, outcomes: bytes, operations: Sequence[bytes]) -> int:
        async with self._turn:
            session = await self._opened()
            write_of_outcomes = session.encode(SetData(self._znode, outcomes, self._version))
            sent_before = False
            while True:
                try:
                    result = await session.multi([write_of_outcomes, *operations])
                except ConnectionLostError as lost:
                    if isinstance(lost, SessionLostError):
                        raise UnknownOutcomeError(self._znode) from lost
                    sent_before = True
                    await self._reconnected.wait()
                    continue
                return await self._counted(session, result, sent_before=sent_before)

    async def _counted(
        self, session: ZooKeeperSession, result: MultiResult, *, sent_before: bool
    ) -> int:
        if result.failed_index is None:
            self._version += 1
            return result.zxid
        if result.failed_index > 0:
            raise ContentConflictError(result.failed_index - 1, result.error_code)
        # The session's znode has changed. If a reply was lost and the version is the next one, the
        # first copy of the multi was applied.
        stat = await self._own_stat(session)
        if not sent_before or stat is None or stat[0] != self._version + 1:
            self._session = None  # Another process changed or deleted the znode.
            await session.close()
            raise UnknownOutcomeError(self._znode)
        self._version += 1
        return stat[1]

    async def _own_stat(self, session: ZooKeeperSession) -> tuple[int, int] | None:
        """Return version and mzxid of the session's znode; None if it does not exist."""
        try:
            stat = await session.exists(self._znode)
        except ConnectionLostError as lost:
            raise UnknownOutcomeError(self._znode) from lost
        return None if stat is None else (stat.version, stat.mzxid)
