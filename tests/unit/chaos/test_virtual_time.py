"""The simulated event loop, its processes and its network."""

from __future__ import annotations

import asyncio
import time

import pytest

from chaos.simulated.network import Direction, NetworkLoop
from chaos.simulated.virtual_time import NothingLeftError, Process, virtual_host

HOUR_S = 3600


def test_time_advances_without_waiting() -> None:
    loop = NetworkLoop(1)
    began_s = time.monotonic()
    with virtual_host(loop, 1):
        before_s = time.monotonic()
        loop.run_until_complete(asyncio.sleep(HOUR_S))
        assert HOUR_S <= time.monotonic() - before_s < HOUR_S + 1
    assert time.monotonic() - began_s < 60


def test_a_paused_process_can_resume_and_an_ended_process_cannot() -> None:
    loop = NetworkLoop(1)
    seen: list[tuple[str, int]] = []

    async def count(name: str) -> None:
        for number in range(3):
            await asyncio.sleep(1)
            seen.append((name, number))

    async def main() -> None:
        paused, killed = Process("paused"), Process("killed")
        for process in (paused, killed):
            loop.create_task(count(process.name), context=process.context)
        await asyncio.sleep(1.5)
        paused.is_paused = killed.has_ended = True
        await asyncio.sleep(10)
        assert seen == [("paused", 0), ("killed", 0)]
        loop.resume(paused)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert seen == [("paused", 0), ("killed", 0), ("paused", 1), ("paused", 2)]


def test_a_cut_holds_bytes_back_and_delivers_them_in_order_when_it_ends() -> None:
    loop = NetworkLoop(1)
    received = b""

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        nonlocal received
        while data := await reader.read(100):
            received += data

    async def main() -> None:
        await asyncio.start_server(serve, "127.0.0.1", 5000)
        _, writer = await asyncio.open_connection("127.0.0.1", 5000)
        writer.write(b"one ")
        await asyncio.sleep(1)
        with loop.network.cut(Direction("port 5000", is_request=True)):
            for text in (b"two ", b"three ", b"four"):
                writer.write(text)
            await asyncio.sleep(HOUR_S)
            assert received == b"one "
        await asyncio.sleep(1)
        writer.close()
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert received == b"one two three four"


def test_a_connection_to_a_killed_process_is_reset() -> None:
    loop = NetworkLoop(1)

    async def main() -> None:
        server = Process("server")
        listening = asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 5000)
        await loop.create_task(listening, context=server.context)
        reader, _ = await asyncio.open_connection("127.0.0.1", 5000)
        server.has_ended = True
        loop.network.process_ended(server)
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 5000)

    loop.run_until_complete(main())


def test_a_simulation_in_which_nothing_is_scheduled_is_an_error() -> None:
    loop = NetworkLoop(1)
    with pytest.raises(NothingLeftError):
        loop.run_until_complete(loop.create_future())
