"""The proxy between brokers recognizes an Envelope by the length of its TLS record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chaos.local.network import EnvelopeProxy

HEARTBEAT, ENVELOPE = 49, 220  # bytes


def record(length: int) -> bytes:
    """Return a TLS record of application data that has this length, header included."""
    return b"\x17\x03\x03" + (length - 5).to_bytes(2, "big") + bytes(length - 5)


class Connected:
    """A client behind the proxy, and what the server received."""

    def __init__(self, proxy: EnvelopeProxy, writer: asyncio.StreamWriter) -> None:
        self.proxy = proxy
        self.writer = writer
        self.received = bytearray()
        self.has_ended = asyncio.Event()

    async def send(self, *lengths: int) -> None:
        """Send records in one write; return when the server has them, or the connection broke."""
        before = len(self.received)
        self.writer.write(b"".join(map(record, lengths)))
        async with asyncio.timeout(10):
            while len(self.received) < before + sum(lengths) and not self.has_ended.is_set():
                await asyncio.sleep(0.001)


@pytest.fixture
async def connected() -> AsyncIterator[Connected]:
    """A connection on which the handshakes are over."""

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                client.received += data
        except ConnectionError:
            pass
        finally:
            client.has_ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy = EnvelopeProxy(lambda: int(server.sockets[0].getsockname()[1]))
    _, writer = await asyncio.open_connection("127.0.0.1", await proxy.start())
    client = Connected(proxy, writer)
    await client.send(*[HEARTBEAT] * 20)
    yield client
    writer.close()
    proxy.stop()
    server.close()


async def test_a_reset_waits_for_an_envelope_even_if_several_heartbeats_arrive_at_once(
    connected: Connected,
) -> None:
    """A reset without an Envelope in flight has no effect, so the run would be undecided."""
    resetting = asyncio.create_task(connected.proxy.reset())
    await asyncio.sleep(0)
    await connected.send(*[HEARTBEAT] * 8)
    assert not resetting.done()
    assert not connected.has_ended.is_set()
    await connected.send(HEARTBEAT, ENVELOPE)
    async with asyncio.timeout(10):
        await resetting
        await connected.has_ended.wait()


async def test_records_are_passed_on_unchanged(connected: Connected) -> None:
    before = len(connected.received)
    await connected.send(ENVELOPE, HEARTBEAT, ENVELOPE)
    assert connected.received[before:] == record(ENVELOPE) + record(HEARTBEAT) + record(ENVELOPE)
