"""100,000 hostile frames at one node: no crash, bounded memory, other connections unaffected."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Iterator

import psutil
import pytest

from bench.frames import Connection, create_topics_frame, decode_answer, request_frame
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from broker_proxy.routing import SHIPPED

FRAMES = 100_000
WORKERS = 48
SEED = 590
MEMORY_GROWTH_BYTES_MAX = 100 * 1024 * 1024
HALF_OPEN = 500


def dry_run(version: int) -> bytes:
    """Return a CreateTopics request that asks what would be."""
    topic = CreatableTopic(name="hostile", num_partitions=1, replication_factor=1)
    message = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
    return request_frame(19, version, 1, message)


def hostile_frames(count: int, seed: int) -> Iterator[bytes]:
    """Yield frames of every bad kind; the same for the same seed."""
    source = random.Random(seed)
    # Dry runs, which version 0 does not know: a flipped bit makes a topic of 65,537 partitions
    # otherwise, and what is measured then is how long it takes to tell of it.
    good = [dry_run(version) for version in API_SPECS[19].versions if version > 0] + [
        request_frame(3, 12, 1, MetadataRequest(topics=None)),
        request_frame(18, 3, 1, ApiVersionsRequest("hostile", "1")),
    ]
    for number in range(count):
        frame = bytearray(source.choice(good))
        match number % 8:
            case 0:  # truncated, the length telling the truth
                body = frame[4 : source.randrange(4, len(frame))]
                yield struct.pack(">i", len(body)) + bytes(body)
            case 1:  # bits flipped
                for _ in range(source.randrange(1, 6)):
                    frame[source.randrange(4, len(frame))] ^= 1 << source.randrange(8)
                # What comes out may be well-formed: a dry run of a name that is not taken.
                yield bytes(frame)
            case 2:  # a length beyond every limit
                yield struct.pack(">i", source.randrange(104857601, 2**31 - 1)) + bytes(64)
            case 3:  # a negative length
                yield struct.pack(">i", -source.randrange(1, 2**31)) + bytes(16)
            case 4:  # an API that does not exist, or a version that does not
                key, version = source.randrange(-5, 200), source.randrange(-3, 40)
                if key in SHIPPED and version in API_SPECS[key].versions:
                    key = 999
                yield struct.pack(">ihhih", 10, key, version, 7, -1)
            case 5:  # an array that claims two billion elements
                yield struct.pack(">ihhihi", 14, 19, 0, 7, -1, 2_000_000_000)
            case 6:  # a varint that never ends, in a flexible version
                yield struct.pack(">ihhih", 20, 19, 7, 7, -1) + b"\x00" + b"\xff" * 9
            case _:  # noise
                noise = source.randbytes(source.randrange(0, 200))
                yield struct.pack(">i", len(noise)) + noise


async def attack(address: str, frames: Iterator[bytes]) -> int:
    """Send frames, each over a connection that may be closed at any moment; return how many."""
    host, _, port = address.rpartition(":")
    sent = 0
    for frame in frames:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(frame)
        writer.write_eof()
        try:
            async with asyncio.timeout(30):
                while await reader.read(65536):
                    pass
        except ConnectionError:
            pass
        finally:
            writer.close()
        sent += 1
    return sent


async def well_behaved(address: str, stop: asyncio.Event) -> int:
    """Ask for metadata all the time; every answer must come, and be right."""
    connection = await Connection.open(address)
    answered = 0
    while not stop.is_set():
        frame = request_frame(3, 12, 1, MetadataRequest(topics=[]))
        response = decode_answer(3, 12, await connection.ask(frame))
        assert len(response.brokers) == 1
        answered += 1
        await asyncio.sleep(0.005)
    await connection.close()
    return answered


@pytest.mark.timeout(900)
async def test_a_hundred_thousand_hostile_frames_hurt_nobody() -> None:
    """
    The node lives, its memory is bounded, a well-behaved client is answered all the while.
    """
    with Cluster(brokers=1) as cluster:
        address = cluster.bootstrap_server(1)
        process = psutil.Process(cluster.brokers[1].pid)
        before = process.memory_info().rss
        stop = asyncio.Event()
        client = asyncio.create_task(well_behaved(address, stop))
        # Connections that say half a frame, or nothing, and stay.
        idle = []
        for number in range(HALF_OPEN):
            _, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(create_topics_frame(["half"])[: number % 30])
            idle.append(writer)
        frames = hostile_frames(FRAMES, SEED)
        sent = await asyncio.gather(*(attack(address, frames) for _ in range(WORKERS)))
        stop.set()
        answered = await client
        grown = process.memory_info().rss - before
        for writer in idle:
            writer.close()
        connection = await Connection.open(address)
        answer = decode_answer(19, 4, await connection.ask(create_topics_frame(["after"])))
        assert sum(sent) == FRAMES
        assert answered > 100
        assert grown < MEMORY_GROWTH_BYTES_MAX, f"{grown / 1e6:.0f} MB"
        assert answer.topics[0].error_code == 0
        assert process.is_running()
        log = (cluster.data_dir / "nodes" / "1" / "node.log").read_text()
        assert "Traceback" not in log
