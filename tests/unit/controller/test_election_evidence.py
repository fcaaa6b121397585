"""The events of an election are written before its multi (the claim) is sent to ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_model.session_state import SessionState
from cluster_model.znodes.layout import ControllerZnode
from controller.store.zookeeper import ZooKeeperStore


class _Log:
    def __init__(self) -> None:
        self.buffered: list[str] = []

    def append(self, event: Any) -> None:
        self.buffered.append(event.kind)

    def flush(self) -> None:
        self.buffered.clear()


class _Session:
    """Rejects every claim, and records which events were unwritten when the claim was sent."""

    session_id = 1

    def __init__(self, log: _Log) -> None:
        self._log = log
        self.unwritten: list[list[str]] = []

    async def open(self, _timeout_s: float) -> None:
        pass

    async def exists(self, path: str) -> object:
        return None if path == ControllerZnode.path else object()

    def encode(self, _operation: Any) -> bytes:
        return b""

    async def multi(self, _operations: Any) -> Any:
        self.unwritten.append(list(self._log.buffered))
        raise InterruptedError


class _Store(ZooKeeperStore):
    def __init__(self, log: _Log) -> None:
        self.session_made = _Session(log)
        super().__init__("", session_timeout_ms=1, on_state=_ignore, log=log, now_s=lambda: 0.0)

    def _new_session(self) -> Any:
        return self.session_made

    async def _read_epoch(self) -> tuple[int, int]:
        return 1, 1


def _ignore(_state: SessionState) -> None:
    pass


async def test_all_events_are_written_before_the_claim_is_sent() -> None:
    store = _Store(_Log())
    await store.open(1)
    with pytest.raises(InterruptedError):
        await store.elect(1, 0)
    assert store.session_made.unwritten == [[]]
