"""An operation that waits for a reconnect ends when its session is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster_model.session_state import ConnectionLostError, SessionLostError, SessionState
from cluster_model.znodes.access import OPEN_ACCESS
from cluster_model.znodes.layout import ControllerZnode
from controller.direct.session import DirectSession
from controller.store.port import Fence, UnknownOutcomeError
from controller.store.zookeeper import ZooKeeperStore
from event_log.writer import NullEventLog


class _Session:
    """Loses the connection during every multi. As in ZooKeeperSession, `close` reports nothing."""

    session_id = 1

    def __init__(self, on_state: Callable[[SessionState], None]) -> None:
        self._on_state = on_state
        self._is_closed = False

    def encode(self, _operation: Any) -> bytes:
        return b""

    async def exists(self, path: str) -> object:
        return None if path == ControllerZnode.path else object()

    async def get(self, _path: str) -> Any:
        raise SessionLostError if self._is_closed else ConnectionLostError

    async def multi(self, _operations: Any) -> Any:
        if self._is_closed:
            raise SessionLostError
        self._on_state(SessionState.SUSPENDED)
        raise ConnectionLostError

    async def close(self) -> None:
        self._is_closed = True


class _Store(ZooKeeperStore):
    def __init__(self) -> None:
        super().__init__(
            "", session_timeout_ms=1, on_state=_ignore, log=NullEventLog(), now_s=lambda: 0.0
        )

    def _new_session(self) -> Any:
        return _Session(self._state_changed)

    async def _read_epoch(self) -> tuple[int, int]:
        return 1, 1


def _ignore(_state: SessionState) -> None:
    pass


async def _close_while_waiting(
    store: ZooKeeperStore | DirectSession, waiting: asyncio.Task[Any]
) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    await store.close()
    await asyncio.wait((waiting,), timeout=5)
    assert waiting.done(), "it waits for a reconnect that never comes"


async def test_an_election_ends_when_its_session_is_closed() -> None:
    """If it went on waiting, the node would take part in no further election."""
    store = _Store()
    election = asyncio.create_task(store.elect(1, 0))
    await _close_while_waiting(store, election)
    with pytest.raises(ConnectionLostError):
        election.result()


async def test_a_direct_write_ends_when_its_session_is_closed() -> None:
    session = DirectSession(
        "",
        broker_id=1,
        session_timeout_ms=1,
        connection_timeout_ms=1,
        access=OPEN_ACCESS,
        log=NullEventLog(),
        on_reply=lambda _latency_ms: None,
    )
    opened: Any = _Session(lambda state: session._state_changed(opened, state))
    session._session = opened
    write = asyncio.create_task(session.write(b"", []))
    await _close_while_waiting(session, write)
    with pytest.raises(UnknownOutcomeError):
        write.result()


async def test_a_commit_ends_when_its_session_is_closed() -> None:
    store = _Store()
    commit = asyncio.create_task(store.commit_pipelined(Fence(1, 1, 1, 0), [[]]))
    await _close_while_waiting(store, commit)
    with pytest.raises(UnknownOutcomeError):
        commit.result()
