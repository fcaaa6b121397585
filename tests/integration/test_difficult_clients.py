"""Slow, silent, hostile and too many clients, and a broker that stops while it serves clients."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import random
import socket
import struct
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress

import pytest

from bridgehead.kafka_wire.framing import frame
from bridgehead.raw_client.asynchronous import AsyncConnection
from broker_proxy.connections.connection_quotas import ConnectionLimits
from tests.integration.broker_peers import (
    API_VERSIONS,
    RESPONSE_BYTES,
    correlation_id,
    create,
    running,
    until,
)


async def test_an_oversized_frame_closes_the_connection_after_earlier_responses() -> None:
    async with running(frame_bytes_max=1_000) as (broker, _):
        client = await broker.connect()
        client.writer.write(frame(API_VERSIONS) + struct.pack(">i", 1_001))
        assert correlation_id(await client.receive_or_none()) == 7
        assert await client.receive_or_none() is None
        client = await broker.connect()
        client.writer.write(b"\xff\xff\xff\xff")
        assert await client.receive_or_none() is None


async def test_a_slow_client_is_served_and_a_silent_one_is_closed() -> None:
    async with running(idle_ms_max=400) as (broker, _):
        slow, silent = await broker.connect(), await broker.connect()
        silent.writer.write(b"\0\0")
        for byte in frame(API_VERSIONS):
            slow.writer.write(bytes([byte]))
            await slow.writer.drain()
            await asyncio.sleep(0.03)
        assert correlation_id(await slow.receive_or_none()) == 7
        assert await silent.receive_or_none() is None
        assert await slow.receive_or_none() is None, (
            "the slow client was not closed after it became idle"
        )
        await until(lambda: broker.server.connection_count == 0)


async def test_a_client_that_waits_for_a_long_write_is_not_idle() -> None:
    async with running(idle_ms_max=200) as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(create(1))
        with pytest.raises(TimeoutError):
            await client.receive_or_none(within_s=0.8)
        controller.go.set()
        assert correlation_id(await client.receive_or_none()) == 1


async def test_an_idle_connection_stays_open_if_there_is_no_idle_timeout() -> None:
    """As in Kafka, a negative connections.max.idle.ms switches the timeout off."""
    async with running(idle_ms_max=-1) as (broker, _):
        client = await broker.connect()
        broker.server._close_idle()
        await asyncio.sleep(0)
        assert correlation_id(await client.exchange(API_VERSIONS)) == 7


async def test_connection_is_closed_if_the_client_never_reads() -> None:
    async with running(idle_ms_max=1_500) as (broker, _):
        greedy = socket.create_connection(("127.0.0.1", broker.port))
        greedy.setblocking(False)
        async with asyncio.timeout(60):
            with pytest.raises(ConnectionError):
                await _send_for_ever(greedy, frame(API_VERSIONS) * 1_000)
        responded = sum(e.kind == "responded" for e in broker.log.events)
        assert responded * RESPONSE_BYTES < 32 * 1024 * 1024, (
            "the broker produced more responses than the buffers can hold"
        )
        other = await broker.connect()
        assert correlation_id(await other.exchange(API_VERSIONS)) == 7
        await until(lambda: broker.server.connection_count <= 1)
        greedy.close()


async def _send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, data)


async def _send_large_requests(port: int, clients: int) -> list[int]:
    async def client(number: int) -> int:
        connection = await AsyncConnection.open(f"127.0.0.1:{port}")
        data = frame(create(number, *(f"{'x' * 30_000}{index}" for index in range(80))))
        for at in range(0, len(data), 50_000):
            connection.writer.write(data[at : at + 50_000])
            await connection.writer.drain()
        return correlation_id(await connection.receive_or_none(within_s=60))

    return await asyncio.gather(*map(client, range(clients)))


def _large_requests(port: int, clients: int) -> list[int]:
    return asyncio.run(_send_large_requests(port, clients))


async def test_large_requests_share_the_memory_and_all_get_a_response() -> None:
    """Twenty clients send 2.4 MB each in small pieces to a broker with 10 MB of request memory.

    The clients are in a process of their own: they send on while the broker is busy.
    """
    loop, context = asyncio.get_running_loop(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as process:
        async with running(frame_bytes_max=10_000_000) as (broker, _):
            memory = broker.server.services.memory
            responded = loop.run_in_executor(process, _large_requests, broker.port, 20)
            muted = asyncio.create_task(until(lambda: memory.has_muted))
            assert await responded == list(range(20))
            assert muted.done(), "the broker never stopped reading from a client"
            await muted
            assert broker.server.closed_for_memory_count == 0
            assert memory.used == 0


async def test_clients_are_not_closed_because_the_brokers_event_loop_is_delayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker_proxy.connections.server._MEMORY_CHECK_S", 0.1)
    async with running(frame_bytes_max=1_000_000) as (broker, _):
        data = frame(create(1, *(f"{'x' * 30_000}{number}" for number in range(30))))
        clients = [await broker.connect() for _ in range(2)]
        for client in clients:
            client.writer.write(data[:600_000])
        await until(lambda: broker.server.services.memory.is_exhausted)
        for _ in range(4):
            time.sleep(0.3)  # noqa: ASYNC251 - blocks the event loop of broker and clients
            await asyncio.sleep(0)
        for client in clients:
            client.writer.write(data[600_000:])
        assert [correlation_id(await client.receive_or_none()) for client in clients] == [1, 1]
        assert broker.server.closed_for_memory_count == 0


async def test_a_connection_above_the_brokers_limit_waits_until_another_closes() -> None:
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(broker=2)
        first, second = [await broker.connect() for _ in range(2)]
        await until(lambda: broker.server.connection_count == 2)
        third = await broker.connect()
        third.send(API_VERSIONS)
        await until(lambda: broker.admission.waiting_count == 1)
        assert correlation_id(await first.exchange(API_VERSIONS)) == 7
        assert broker.server.connection_count == 2
        second.close()
        assert correlation_id(await third.receive_or_none(within_s=30)) == 7
        assert broker.admission.waiting_count == 0


async def test_a_connection_above_the_limit_of_its_address_is_closed() -> None:
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(per_ip=1)
        first, second = [await broker.connect() for _ in range(2)]
        assert await second.receive_or_none(within_s=30) is None
        assert correlation_id(await first.exchange(API_VERSIONS)) == 7


async def test_a_lower_limit_closes_the_least_recently_used_connections() -> None:
    async with running() as (broker, _):
        clients = [await broker.connect() for _ in range(4)]
        for client in (clients[1], clients[0], clients[3], clients[2]):
            assert correlation_id(await client.exchange(API_VERSIONS)) == 7
        broker.quotas.limits = ConnectionLimits(broker=2)
        broker.server.limits_changed()
        assert [await clients[at].receive_or_none(within_s=30) for at in (0, 1)] == [None, None]
        assert correlation_id(await clients[2].exchange(API_VERSIONS)) == 7
        assert correlation_id(await clients[3].exchange(API_VERSIONS)) == 7


async def test_the_number_of_waiting_connections_is_bounded() -> None:
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(broker=0)
        waiting = [await broker.connect() for _ in range(3)]
        await until(lambda: broker.admission.waiting_count == 3)
        broker.admission.waiting_max = 3
        assert await (await broker.connect()).receive_or_none(within_s=30) is None
        await broker.server.stop(0)
        assert [await client.receive_or_none(within_s=30) for client in waiting] == [None] * 3


async def test_stopping_finishes_running_requests() -> None:
    async with running() as (broker, controller):
        controller.go.clear()
        client, idle = await broker.connect(), await broker.connect()
        client.send(create(1))
        await until(lambda: len(controller.seen) == 1)
        stopping = asyncio.create_task(broker.server.stop(5.0))
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await broker.connect()
        controller.go.set()
        assert correlation_id(await client.receive_or_none()) == 1
        await asyncio.wait_for(stopping, 60)
        assert await client.receive_or_none() is None
        assert await idle.receive_or_none() is None
        assert broker.server.connection_count == 0


async def test_stopping_does_not_wait_for_a_hanging_request() -> None:
    async with running() as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(create(1))
        await until(lambda: len(controller.seen) == 1)
        await asyncio.wait_for(broker.server.stop(0.2), 60)
        assert await client.receive_or_none() is None


def _hostile(number: int, chance: random.Random) -> bytes:
    """Return a truncated stream, or one with noise, flipped bits or a wrong length or header."""
    data = bytearray(frame(create(number)) + frame(API_VERSIONS))
    match number % 6:
        case 0:
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[chance.randrange(len(data)) :]
        case 2:
            data[:4] = struct.pack(">i", chance.choice([-1, -(2**31), 2**31 - 1, 999_999]))
        case 3:
            data[4:8] = struct.pack(">hh", chance.randrange(-2, 120), chance.randrange(-2, 30))
        case 4:
            data[chance.randrange(8, len(data)) :] = chance.randbytes(chance.randrange(60))
        case _:
            data = bytearray(chance.randbytes(chance.randrange(1, 200)))
    return bytes(data)


async def test_thousands_of_hostile_streams_leave_other_clients_unaffected() -> None:
    """A well-behaved client is served during 3,000 streams, some of which stay half-open."""
    chance = random.Random(590)
    async with running(frame_bytes_max=1_000_000) as (broker, _):
        bystander = await broker.connect()
        slowest, done = 0.0, asyncio.Event()

        async def keep_asking() -> None:
            nonlocal slowest
            for number in itertools.count():
                if done.is_set():
                    return
                began = time.monotonic()
                assert correlation_id(await bystander.exchange(create(number))) == number
                slowest = max(slowest, time.monotonic() - began)

        async def attack(number: int, kept: list[AsyncConnection]) -> None:
            client = await broker.connect()
            client.writer.write(_hostile(number, chance))
            if number % 10 == 0:
                kept.append(client)
                return
            with suppress(TimeoutError, ConnectionError):
                client.writer.write_eof()
                async with asyncio.timeout(60):
                    while await client.reader.read(65_536):
                        pass
            client.close()

        asking = asyncio.create_task(keep_asking())
        half_open: list[AsyncConnection] = []
        for start in range(0, 3_000, 30):
            await asyncio.gather(*(attack(n, half_open) for n in range(start, start + 30)))
        done.set()
        await asyncio.wait_for(asking, 60)
        assert slowest < 10.0
        for client in half_open:
            client.close()
        await until(lambda: broker.server.connection_count == 1)
        assert broker.forwarding.queue_length == 0
        assert correlation_id(await bystander.exchange(API_VERSIONS)) == 7
