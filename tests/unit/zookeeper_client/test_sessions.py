"""How a session is opened, and the timeout that ZooKeeper grants it."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kazoo.client import KazooState
from kazoo.exceptions import ConnectionClosedError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import ForceRetryError

import zookeeper_client.session
from broker_proxy.metadata.session import ZooKeeperWatcher
from cluster_model.session_state import ConnectionLostError, SessionState
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
    # Wait for kazoo's thread, because its last log message must not appear after pytest's summary.
    await asyncio.to_thread(session._connection.stop, 10)


@pytest.mark.parametrize(("granted_ms", "timeout_ms"), [(40_000, 40_000), (120_000, 90_000)])
async def test_the_timeout_of_a_session_is_limited_to_the_one_that_zookeeper_grants(
    granted_ms: int, timeout_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session()
    response = (granted_ms * 2 / 3, granted_ms)  # kazoo's timeouts for reads and for connecting
    monkeypatch.setattr(ConnectionHandler, "_connect", lambda *_arguments: response)
    assert session._connection._connect("host", "127.0.0.1", 1) == response
    assert session.granted_timeout_ms == pytest.approx(timeout_ms)


class _OtherClient:
    """The client with which a session is expired. Its first `failures` calls of `start` fail.

    kazoo also raises KazooTimeoutError if the new connection breaks at once, for example because
    the session's own client takes the session back.
    """

    failures = 0
    starts = 0

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    def start(self, _timeout: float) -> None:
        type(self).starts += 1
        if self.starts <= self.failures:
            raise KazooTimeoutError("Connection time-out")

    def stop(self) -> None:
        self._session._state_changed(KazooState.LOST)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def expiring(monkeypatch: pytest.MonkeyPatch) -> ZooKeeperSession:
    """A session that is expired with an `_OtherClient`."""
    session = a_session()
    monkeypatch.setattr(_OtherClient, "starts", 0)
    monkeypatch.setattr(zookeeper_client.session, "_RECONNECT_DELAY_S", 0.0)
    monkeypatch.setattr(
        zookeeper_client.session, "KazooClient", lambda **_options: _OtherClient(session)
    )
    return session


async def test_a_session_that_its_client_takes_back_is_expired_again(
    expiring: ZooKeeperSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_OtherClient, "failures", 2)
    await expiring.expire()
    assert expiring.state is SessionState.LOST
    assert _OtherClient.starts == 3


async def test_a_session_that_cannot_be_expired_is_reported(
    expiring: ZooKeeperSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_OtherClient, "failures", 100)
    with pytest.raises(ConnectionLostError, match="still there after 5 attempts"):
        await expiring.expire()
    assert _OtherClient.starts == 5


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
    none = cast(Any, Mock(tokens=None, acls=None))
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


async def test_a_session_without_a_server_does_not_connect_ever_faster() -> None:
    """An outage of an hour has as many attempts in its last second as in its first."""
    session = a_session()
    retry, pauses = session._connection.retry_sleeper.copy(), list[float]()
    retry.sleep_func, retry.interrupt = pauses.append, None

    def disconnect() -> None:
        if len(pauses) == 60_000:
            raise ConnectionClosedError
        raise ForceRetryError

    with pytest.raises(ConnectionClosedError):
        retry(disconnect)
    assert min(pauses) == max(pauses) == 0.05
    await session.close()
