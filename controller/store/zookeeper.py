"""The controller session: election, and the fenced multi.

From the bridge release on, only this module writes metadata. Operation 0 of each of these multis
checks the version of /controller_epoch; operation 1 sets /bridgehead/commit, if it has the version
that the controller expects. After a lost reply the same multi is sent again. If operation 0 of this
second copy fails, another controller was elected. If operation 1 fails, the first copy was applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.access import OPEN_ACCESS, ZooKeeperAccess
from cluster_model.znodes.layout import (
    BRIDGEHEAD_PATHS,
    START_UP_PATHS,
    ClusterIdZnode,
    CommitZnode,
    ControllerEpochZnode,
    ControllerZnode,
    OutcomeZnode,
)
from cluster_model.znodes.operations import Check, Create, Operation, SetData
from cluster_model.znodes.values import ZnodeContentError
from controller.store.load import ESSENTIAL_PATHS, check_essential
from controller.store.port import (
    Committed,
    ContentConflictError,
    ControllerMovedError,
    Fence,
    UnknownOutcomeError,
)
from event_log.events import (
    ClaimSent,
    CommitAcknowledged,
    CommitSent,
    CommitUnknown,
    SessionLost,
    SessionOpened,
)
from event_log.writer import EventLog
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import MultiResult, Read, ReadResult

# The most operations of a multi besides FENCE_OPERATIONS. A multi of this size takes 4 ms; larger
# multis save no time.
OPERATIONS_MAX: Final = 500
# jute.maxbuffer is 1 MiB by default.
MULTI_BYTES_MAX: Final = 900_000
FENCE_OPERATIONS: Final = 2  # check of /controller_epoch, commit counter


class ZooKeeperStore:
    """One controller session, from candidacy to resignation."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        on_state: Callable[[SessionState], None],
        log: EventLog,
        now_s: Callable[[], float],
        access: ZooKeeperAccess = OPEN_ACCESS,
        on_reply: Callable[[float], None] = lambda _latency_ms: None,
        cluster_id: Callable[[], str] = lambda: "",
    ) -> None:
        """`cluster_id` returns the cluster of this node; "" while it is unknown."""
        self._cluster_id = cluster_id
        self._connect = connect
        self._session_timeout_ms = session_timeout_ms
        self._on_state = on_state
        self._log = log
        self._now_s = now_s
        self._access = access
        self._on_reply = on_reply
        self._reconnected = asyncio.Event()
        self._session = self._new_session()
        self._commit_number = 0
        self._commit_lead = 0  # commit number minus the counter's version

    def _new_session(self) -> ZooKeeperSession:
        return ZooKeeperSession(
            self._connect,
            session_timeout_ms=self._session_timeout_ms,
            on_state=self._state_changed,
            access=self._access,
            on_reply=self._on_reply,
        )

    def _state_changed(self, state: SessionState) -> None:
        if state is SessionState.SUSPENDED:
            self._reconnected.clear()
        else:
            self._reconnected.set()
        if state is SessionState.LOST:
            self._log.append(SessionLost(role="controller", session=self.session))
        self._on_state(state)

    @property
    def session(self) -> str:
        """The session's id as the transaction log shows it, in hexadecimal."""
        return f"0x{self._session.session_id:x}"

    async def open(self, timeout_s: float) -> None:
        """Connect. Raises ConnectionLostError when no server answers."""
        await self._session.open(timeout_s)
        self._log.append(SessionOpened(role="controller", session=self.session))

    async def close(self) -> None:
        """End the session, which deletes /controller."""
        await self._session.close()
        self._reconnected.set()  # A waiting election or commit now sees that the session is lost.

    async def expire(self) -> None:
        """Make the server expire this session (for chaos runs)."""
        await self._session.expire()

    def lease_holds(self) -> bool:
        """False after two thirds of the session timeout without a reply from ZooKeeper."""
        silent_s = self._now_s() - self._session.last_contact_s
        return (
            self._session.state is not SessionState.LOST
            and silent_s * 1000 < self._session.granted_timeout_ms * 2 / 3
        )

    async def ensure_start_up_paths(self, cluster_id: str, more: Sequence[str] = ()) -> str:
        """Create the persistent paths of Kafka and Bridgehead; return the cluster id.

        If two nodes create /cluster/id at the same time, both return the id that was written.
        """
        await self._session.create_root()
        # The id comes first: brokers of a lost cluster then see that the paths are not theirs.
        wanted: list[Operation] = [
            Create("/cluster"),
            Create(ClusterIdZnode.path, ClusterIdZnode.encode(cluster_id)),
        ]
        for path in (*START_UP_PATHS, *more, *BRIDGEHEAD_PATHS):
            parts = path.split("/")[1:]
            for depth in range(1, len(parts) + 1):
                parent = Create("/" + "/".join(parts[:depth]))
                if parent not in wanted:
                    wanted.append(parent)
        wanted.append(Create(CommitZnode.path, b"0"))
        # Each path has its own multi, because it may already exist. Parents precede their children.
        await asyncio.gather(*(self._session.multi([self.encode(o)]) for o in wanted))
        return ClusterIdZnode.decode((await self._session.get(ClusterIdZnode.path)).data)

    async def elect(self, broker_id: int, now_ms: int) -> Fence | None:
        """Try to become the active controller, as Kafka does (docs/kafka/election-and-epoch.md).

        Returns None if another controller is active.

        Raises:
            ConnectionLostError: the connection broke before the election was decided.
            ZnodeContentError: no controller could work with what ZooKeeper contains.
        """
        controller, _, *essential = await asyncio.gather(
            self._session.exists(ControllerZnode.path),
            self._check_cluster_id(),
            *(self._session.exists(path) for path in ESSENTIAL_PATHS),
        )
        if controller is not None:
            return None
        # A node that starts would create all paths again, without topics.
        check_essential(dict(zip(ESSENTIAL_PATHS, essential, strict=True)))
        epoch, version = await self._read_epoch()
        self._log.append(ClaimSent(epoch=epoch + 1))
        # If this process is killed after the claim, the evidence still shows which node made it.
        self._log.flush()
        claim: tuple[Operation, ...] = (
            Create(ControllerZnode.path, ControllerZnode.encode(broker_id, now_ms), ephemeral=True),
            SetData(ControllerEpochZnode.path, ControllerEpochZnode.encode(epoch + 1), version),
        )
        try:
            result = await self._session.multi([self.encode(o) for o in claim])
        except ConnectionLostError as lost:
            if isinstance(lost, SessionLostError):
                raise
            await self._reconnected.wait()
            return await self._own_election(broker_id, epoch + 1)
        if result.failed_index is not None:
            return None
        last_zxid = await self._read_last_commit()
        return Fence(epoch + 1, version + 1, result.zxid, last_zxid)

    async def _check_cluster_id(self) -> None:
        """Raise ZnodeContentError if ZooKeeper has another cluster than this node, or none."""
        if not (cluster_id := self._cluster_id()):
            return
        path = ClusterIdZnode.path
        try:
            now = ClusterIdZnode.decode((await self._session.get(path)).data)
        except NoSuchZnodeError:
            now = ""
        except ZnodeContentError:  # damaged by hand; another cluster's id is valid
            return
        if now != cluster_id:
            problem = f"names the cluster {now}" if now else "is missing"
            raise ZnodeContentError(
                f"{path} {problem}, but this node belongs to {cluster_id}, so ZooKeeper has lost "
                "metadata: restore its data"
            )

    async def _read_epoch(self) -> tuple[int, int]:
        try:
            znode = await self._session.get(ControllerEpochZnode.path)
        except NoSuchZnodeError:
            await self._session.multi([self.encode(Create(ControllerEpochZnode.path, b"0"))])
            znode = await self._session.get(ControllerEpochZnode.path)
        return ControllerEpochZnode.decode(znode.data), znode.version

    async def _own_election(self, broker_id: int, epoch: int) -> Fence | None:
        """Return the result of a claim whose reply was lost; None if this session did not win."""
        try:
            znode = await self._session.get(ControllerZnode.path)
        except NoSuchZnodeError:
            return None
        written, version = await self._read_epoch()
        if ControllerZnode.decode(znode.data) != broker_id or written != epoch:
            return None
        if znode.stat.ephemeral_owner & (2**64 - 1) != self._session.session_id:
            return None  # /controller belongs to an earlier incarnation of this broker.
        last_zxid = await self._read_last_commit()
        return Fence(epoch, version, znode.stat.czxid, last_zxid)

    async def _read_last_commit(self) -> int:
        """Read the number of the last commit and return its zxid.

        From now on only this session commits.

        Normally the number is the version of the commit counter. If the counter was deleted by
        hand, it is created again, and the numbers continue after the newest outcomes. Numbers that
        another program has used are skipped.
        """
        try:
            counter = await self._session.get(CommitZnode.path)
        except NoSuchZnodeError:
            await self._session.multi([self.encode(Create(CommitZnode.path, b"0"))])
            counter = await self._session.get(CommitZnode.path)
        names = await self._session.children(OutcomeZnode.parent)
        commits = (OutcomeZnode.commit_of(name) for name in names)
        newest = max((commit for commit in commits if commit is not None), default=0)
        self._commit_number = max(counter.version, newest)
        taken = {f"{OutcomeZnode.parent}/{name}" for name in names}
        while OutcomeZnode.path(self._commit_number + 1) in taken:
            self._commit_number += 1
        self._commit_lead = self._commit_number - counter.version
        return counter.stat.mzxid

    @property
    def next_commit(self) -> int:
        """The number of the next multi; also the name of the znode with its outcomes."""
        return self._commit_number + 1

    def encode(self, operation: Operation) -> bytes:
        """Return an operation's bytes. Their size determines how multis are split."""
        return self._session.encode(operation)

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        """Read many znodes. Raises ConnectionLostError."""
        return await self._session.read(reads)

    async def children(self, path: str, watch: Callable[[], None]) -> list[str]:
        """Return a znode's children; call `watch` once when they change.

        Raises:
            ConnectionLostError: the connection broke.
            ZnodeContentError: the znode is missing.
        """
        try:
            return await self._session.children(path, watch)
        except NoSuchZnodeError:
            check_essential({path: None})
            raise

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        """Write several multis in order, all in flight at the same time.

        Each requires the version of the commit counter that the multi before it produces, so all
        multis after a conflict fail and write nothing. Returns the committed multis, and the
        conflict of the next one, if any: one of its effects failed, it wrote nothing, and the
        commit counter did not change.

        Raises:
            ControllerMovedError: another controller was elected, or another process changed the
                commit counter; the failed multi wrote nothing.
            UnknownOutcomeError: the multi's reply was lost, and then the session was lost, another
                controller was elected, or the connection broke while the result was read.

        The multis before the failed one have been written.
        """
        first = self._commit_number + 1
        multis = [
            [*self._fence_operations(fence, first + index), *effect]
            for index, effect in enumerate(effects)
        ]
        for index, operations in enumerate(multis):
            size = sum(map(len, operations))
            assert len(operations) <= OPERATIONS_MAX + FENCE_OPERATIONS, len(operations)
            self._log.append(
                CommitSent(
                    number=first + index,
                    epoch=fence.epoch,
                    operations=len(operations),
                    bytes=size,
                )
            )
        replies = await asyncio.gather(
            *(self._session.multi(operations) for operations in multis), return_exceptions=True
        )
        committed: list[Committed] = []
        for index, (operations, reply) in enumerate(zip(multis, replies, strict=True)):
            try:
                committed.append(await self._resolve(fence, first + index, operations, reply))
            except ContentConflictError as conflict:
                return committed, conflict
        return committed, None

    async def _resolve(
        self,
        fence: Fence,
        number: int,
        operations: Sequence[bytes],
        reply: MultiResult | BaseException,
    ) -> Committed:
        """Return the result of a multi, resending it whenever its reply is lost."""
        sent_before = False
        while not isinstance(reply, MultiResult):
            if not isinstance(reply, ConnectionLostError):
                raise reply
            self._log.append(CommitUnknown(number=number, epoch=fence.epoch))
            await self._wait_for_reconnect(number, reply)
            sent_before = True
            try:
                reply = await self._session.multi(operations)
            except ConnectionLostError as lost:
                reply = lost
        if reply.failed_index is None:
            return self._counted(number, reply.zxid)
        if reply.failed_index == 0:
            if sent_before:
                raise UnknownOutcomeError(f"commit {number}: superseded after a lost reply")
            raise ControllerMovedError(f"epoch {fence.epoch} was superseded")
        if reply.failed_index == 1:
            return await self._first_copy(number, sent_before)
        raise ContentConflictError(reply.failed_index - FENCE_OPERATIONS, reply.error_code)

    async def _wait_for_reconnect(self, number: int, lost: ConnectionLostError) -> None:
        """Wait for the next connection. Raises UnknownOutcomeError if the session is lost."""
        if isinstance(lost, SessionLostError):
            raise UnknownOutcomeError(f"commit {number}") from lost
        await self._reconnected.wait()

    def _fence_operations(self, fence: Fence, number: int) -> list[bytes]:
        return [
            self.encode(Check(ControllerEpochZnode.path, fence.zk_version)),
            self.encode(SetData(CommitZnode.path, b"%d" % number, number - 1 - self._commit_lead)),
        ]

    async def _first_copy(self, number: int, sent_before: bool) -> Committed:
        """Return the result of a multi's first copy. It was applied, because the counter changed.

        The zxid is the czxid of the outcomes' znode. If the multi has no outcomes, it is the
        counter's mzxid; that is too new if a later multi of this term was applied as well.
        """
        if not sent_before:
            raise ControllerMovedError(f"{CommitZnode.path} was changed by another writer")
        try:
            outcome = await self._session.exists(OutcomeZnode.path(number))
            counter = await self._session.get(CommitZnode.path)
        except ConnectionLostError as lost:
            raise UnknownOutcomeError(f"commit {number}") from lost
        return self._counted(number, counter.stat.mzxid if outcome is None else outcome.czxid)

    def _counted(self, number: int, zxid: int) -> Committed:
        self._commit_number = number
        self._log.append(CommitAcknowledged(number=number, zxid=zxid, session=self.session))
        return Committed(number, zxid)
