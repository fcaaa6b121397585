"""How a session is opened."""

from __future__ import annotations

import asyncio
import socket

from zookeeper_client.session import ZooKeeperSession


def a_session(connect: str = "127.0.0.1:1") -> ZooKeeperSession:
    return ZooKeeperSession(connect, session_timeout_ms=90_000, on_state=lambda _state: None)


async def test_a_session_that_nobody_waits_for_is_not_opened_later() -> None:
    """A caller whose time is over would leave a session and a thread until the node stops."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        session = a_session(f"127.0.0.1:{silent.getsockname()[1]}")
        opening = asyncio.create_task(session.open(60))
        await asyncio.sleep(0.1)
        opening.cancel()
        done, _ = await asyncio.wait((opening,), timeout=10)
        assert done, "the caller waits for kazoo"
        assert await asyncio.to_thread(session._client._stopped.wait, 10), "kazoo still connects"
    await session.close()
