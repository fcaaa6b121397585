"""How a session is opened, and the timeout that ZooKeeper grants it."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kazoo.protocol.connection import ConnectionHandler

from broker_proxy.watcher import ZooKeeperWatcher
from cluster_model.session_state import ConnectionLostError
from controller.store.zookeeper import ZooKeeperStore
from event_log.writer import NullEventLog
from zookeeper_client.session import ZooKeeperSession


def a_session(connect: str = "127.0.0.1:1") -> ZooKeeperSession:
    return ZooKeeperSession(connect, session_timeout_ms=90_000, on_state=lambda _state: None)


async def test_a_session_that_nobody_waits_for_is_not_opened_later() -> None:
    """If it were opened later, the session and its thread would stay until the node stops."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        session = a_session(f"127.0.0.1:{silent.getsockname()[1]}")
        opening = asyncio.create_task(session.open(60))
        await asyncio.sleep(0.1)
        opening.cancel()
        done, _ = await asyncio.wait((opening,), timeout=10)
        assert done, "the caller waits for kazoo"
        assert await asyncio.to_thread(session._client._stopped.wait, 10), "kazoo still connects"
    await session.close()


async def test_a_caller_with_a_timeout_does_not_wait_longer_for_a_silent_server() -> None:
    """The timeout of the session is longer: 90 s."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        session = a_session(f"127.0.0.1:{silent.getsockname()[1]}")
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLostError, match=r"within 0\.1 s"):
                await session.open(0.1)
            await session.close()


@pytest.mark.parametrize(("granted_ms", "timeout_ms"), [(40_000, 40_000), (120_000, 90_000)])
async def test_the_timeout_of_a_session_is_limited_to_the_one_that_zookeeper_grants(
    granted_ms: int, timeout_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session()
    answer = (granted_ms * 2 / 3, granted_ms)  # kazoo's timeouts for reads and for connecting
    monkeypatch.setattr(ConnectionHandler, "_connect", lambda *_arguments: answer)
    assert session._connection._connect("host", "127.0.0.1", 1) == answer
    assert session.granted_timeout_ms == pytest.approx(timeout_ms)


class _Store(ZooKeeperStore):
    """A store whose session has a timeout of 40 s. ZooKeeper's last reply was 30 s ago."""

    def _new_session(self) -> Any:
        return SimpleNamespace(state=None, last_contact_s=0.0, granted_timeout_ms=40_000)


def test_a_lease_is_shorter_than_the_session_that_zookeeper_grants() -> None:
    """ZooKeeper grants at most its maxSessionTimeout, by default 40 s."""
    store = _Store(
        "", session_timeout_ms=90_000, on_state=_ignore, log=NullEventLog(), now_s=lambda: 30.0
    )
    assert not store.lease_holds()


async def test_a_watcher_knows_the_timeout_of_its_session() -> None:
    none = cast(Any, SimpleNamespace(tokens=None, acls=None))
    watcher = ZooKeeperWatcher(
        "127.0.0.1:1",
        session_timeout_ms=90_000,
        connection_timeout_ms=1,
        callbacks=none,
        log=NullEventLog(),
        now_ms=lambda: 0,
    )
    assert watcher.session_timeout_ms == 90_000
    watcher._session = cast(Any, SimpleNamespace(granted_timeout_ms=40_000))
    assert watcher.session_timeout_ms == 40_000


def _ignore(_state: object) -> None:
    pass
