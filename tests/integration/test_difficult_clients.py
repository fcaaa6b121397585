"""Clients that are slow, silent, greedy, hostile or too many; a broker that stops under them."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
import struct
import time
from contextlib import suppress

import pytest

from bridgehead.kafka_wire.framing import frame
from broker_proxy.connection_quotas import ConnectionLimits
from tests.integration.broker_peers import (
    ANSWER_BYTES,
    API_VERSIONS,
    Client,
    correlation_id,
    create,
    running,
    until,
)


async def test_a_frame_beyond_the_cap_closes_after_what_came_before_was_answered() -> None:
    """Before any of it is buffered."""
    async with running(frame_bytes_max=1_000) as (broker, _):
        client = await broker.connect()
        client.writer.write(frame(API_VERSIONS) + struct.pack(">i", 1_001))
        assert correlation_id(await client.answer()) == 7
        assert await client.answer() is None
        client = await broker.connect()
        client.writer.write(b"\xff\xff\xff\xff")
        assert await client.answer() is None


async def test_a_slow_client_is_served_and_a_silent_one_is_closed() -> None:
    """A byte every few milliseconds is activity; half a length and then nothing is not."""
    async with running(idle_ms_max=400) as (broker, _):
        slow, silent = await broker.connect(), await broker.connect()
        silent.writer.write(b"\0\0")
        for byte in frame(API_VERSIONS):
            slow.writer.write(bytes([byte]))
            await slow.writer.drain()
            await asyncio.sleep(0.03)
        assert correlation_id(await slow.answer()) == 7
        assert await silent.answer() is None
        assert await slow.answer() is None, "idle now as well"
        await until(lambda: broker.server.connection_count == 0)


async def test_a_client_that_waits_for_a_long_write_is_not_idle() -> None:
    """Its request is being executed."""
    async with running(idle_ms_max=200) as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(create(1))
        with pytest.raises(TimeoutError):
            await client.answer(within_s=0.8)
        controller.go.set()
        assert correlation_id(await client.answer()) == 1


async def test_a_client_that_never_reads_is_no_longer_read_and_then_closed() -> None:
    """Its answers fill the sockets and one buffer; then nothing more is taken from it."""
    async with running(idle_ms_max=1_500) as (broker, _):
        greedy = socket.create_connection(("127.0.0.1", broker.port))
        greedy.setblocking(False)
        async with asyncio.timeout(60):
            with pytest.raises(ConnectionError):
                await _send_for_ever(greedy, frame(API_VERSIONS) * 1_000)
        answered = sum(e.kind == "answered" for e in broker.log.events)
        assert answered * ANSWER_BYTES < 32 * 1024 * 1024, "the sockets' buffers and one of ours"
        other = await broker.connect()
        assert correlation_id(await other.ask(API_VERSIONS)) == 7
        await until(lambda: broker.server.connection_count <= 1)
        greedy.close()


async def _send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, data)


async def test_one_connection_more_than_allowed_waits_until_another_is_gone() -> None:
    """As at a Kafka's acceptor: it is connected, and served when its turn comes."""
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(broker=2)
        first, second = [await broker.connect() for _ in range(2)]
        await until(lambda: broker.server.connection_count == 2)
        third = await broker.connect()
        third.send(API_VERSIONS)
        await until(lambda: broker.admission.waiting_count == 1)
        assert correlation_id(await first.ask(API_VERSIONS)) == 7
        assert broker.server.connection_count == 2
        second.close()
        assert correlation_id(await third.answer(within_s=30)) == 7
        assert broker.admission.waiting_count == 0


async def test_one_connection_more_than_its_address_may_have_is_closed_at_once() -> None:
    """The others stay."""
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(per_ip=1)
        first, second = [await broker.connect() for _ in range(2)]
        assert await second.answer(within_s=30) is None
        assert correlation_id(await first.ask(API_VERSIONS)) == 7


async def test_fewer_connections_than_there_are_close_those_that_were_used_least_recently() -> None:
    """As many as are too many."""
    async with running() as (broker, _):
        clients = [await broker.connect() for _ in range(4)]
        for client in (clients[1], clients[0], clients[3], clients[2]):
            assert correlation_id(await client.ask(API_VERSIONS)) == 7
        broker.quotas.limits = ConnectionLimits(broker=2)
        broker.server.limits_changed()
        assert [await clients[at].answer(within_s=30) for at in (0, 1)] == [None, None]
        assert correlation_id(await clients[2].ask(API_VERSIONS)) == 7
        assert correlation_id(await clients[3].ask(API_VERSIONS)) == 7


async def test_who_waits_for_a_turn_is_limited_in_number_and_sent_away_at_the_end() -> None:
    """A flood of connections takes so many sockets and no more."""
    async with running() as (broker, _):
        broker.quotas.limits = ConnectionLimits(broker=0)
        waiting = [await broker.connect() for _ in range(3)]
        await until(lambda: broker.admission.waiting_count == 3)
        broker.admission.waiting_max = 3
        assert await (await broker.connect()).answer(within_s=30) is None
        await broker.server.stop(0)
        assert [await client.answer(within_s=30) for client in waiting] == [None] * 3


async def test_stopping_lets_what_runs_end_and_accepts_no_more() -> None:
    """The answer still reaches its client, then the connection is closed."""
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
        assert correlation_id(await client.answer()) == 1
        await asyncio.wait_for(stopping, 60)
        assert await client.answer() is None
        assert await idle.answer() is None
        assert broker.server.connection_count == 0


async def test_stopping_is_bounded_though_a_request_hangs() -> None:
    """Nobody waits for a controller that does not answer."""
    async with running() as (broker, controller):
        controller.go.clear()
        client = await broker.connect()
        client.send(create(1))
        await until(lambda: len(controller.seen) == 1)
        await asyncio.wait_for(broker.server.stop(0.2), 60)
        assert await client.answer() is None


def _hostile(number: int, chance: random.Random) -> bytes:
    """One damaged stream: flipped, cut, over-long, of unknown version, or noise."""
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
    """3,000 of them, some left half-open, beside a client that asks all the time."""
    chance = random.Random(590)
    async with running(frame_bytes_max=1_000_000) as (broker, _):
        bystander = await broker.connect()
        slowest, done = 0.0, asyncio.Event()

        async def ask_on() -> None:
            nonlocal slowest
            for number in itertools.count():
                if done.is_set():
                    return
                began = time.monotonic()
                assert correlation_id(await bystander.ask(create(number))) == number
                slowest = max(slowest, time.monotonic() - began)

        async def attack(number: int, kept: list[Client]) -> None:
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

        asking = asyncio.create_task(ask_on())
        half_open: list[Client] = []
        for start in range(0, 3_000, 30):
            await asyncio.gather(*(attack(n, half_open) for n in range(start, start + 30)))
        done.set()
        await asyncio.wait_for(asking, 60)
        assert slowest < 10.0
        for client in half_open:
            client.close()
        await until(lambda: broker.server.connection_count == 1)
        assert broker.forwarding.queue_length == 0
        assert correlation_id(await bystander.ask(API_VERSIONS)) == 7
