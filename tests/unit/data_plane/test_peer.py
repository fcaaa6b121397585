"""A connection to another broker ends when it is not needed or the other broker closes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from bridgehead.admin.config import Address
from bridgehead.admin.connection import BrokerConnection, Stage
from bridgehead.admin.errors import ConnectionFailedError
from bridgehead.admin.requests import Request
from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.replication.peer import PeerConnection, PeerSecurity

SECURITY = PeerSecurity("1", None, None)
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def a_broker(serve: Serve) -> AsyncIterator[Address]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield Address(host, port)
    finally:
        server.close()


async def test_an_attempt_that_is_cancelled_closes_its_connection() -> None:
    reached, closed = asyncio.Event(), asyncio.Event()

    async def never_responds(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        with suppress(ConnectionError):
            while await reader.read(1000):
                pass
        closed.set()
        writer.close()

    async with a_broker(never_responds) as address, asyncio.timeout(10):
        attempt = asyncio.create_task(PeerConnection.open(address, SECURITY, 60))
        await reached.wait()
        attempt.cancel()
        await closed.wait()


async def test_a_request_on_a_connection_that_the_broker_closed_fails_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ready(core: BrokerConnection) -> None:
        core.stage = Stage.NEGOTIATING

    def receive(core: BrokerConnection, _data: bytes) -> list[object]:
        core.stage = Stage.READY
        return []

    def version_of(_core: BrokerConnection, _request: Request) -> tuple[int, str]:
        return 0, "shipped"

    monkeypatch.setattr(BrokerConnection, "opened", ready)
    monkeypatch.setattr(BrokerConnection, "receive", receive)
    monkeypatch.setattr(BrokerConnection, "version_of", version_of)
    monkeypatch.setattr(BrokerConnection, "send", lambda *_args: 0)

    async def closes(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready")
        writer.close()

    async with a_broker(closes) as address:
        lost = asyncio.Event()
        original = PeerConnection.connection_lost

        def connection_lost(peer: PeerConnection, error: Exception | None) -> None:
            original(peer, error)
            lost.set()

        monkeypatch.setattr(PeerConnection, "connection_lost", connection_lost)
        peer = await PeerConnection.open(address, SECURITY, 10)
        await lost.wait()
        with pytest.raises(ConnectionFailedError, match="closed the connection"):
            await peer.request(ApiKey.FETCH, None, 1)
