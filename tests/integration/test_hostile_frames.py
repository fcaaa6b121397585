"""Hostile frames neither crash a node nor exhaust its memory nor affect other connections."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Iterator

import psutil
import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, decode_message, encode_message
from broker_proxy.requests.routing import SHIPPED

WORKERS = 48
SEED = 590
MEMORY_GROWTH_BYTES_MAX = 100 * 1024 * 1024
HALF_OPEN = 500


def dry_run(version: int) -> bytes:
    """Return a CreateTopics request with validate_only."""
    topic = CreatableTopic(name="hostile", num_partitions=1, replication_factor=1)
    message = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
    return frame(encode_message(19, version, message))


def hostile_frames(count: int, seed: int) -> Iterator[bytes]:
    """Yield frames of every malformed kind. Equal seeds yield equal frames."""
    source = random.Random(seed)
    # Every creation is a dry run. Otherwise a flipped bit could create a topic with 65,537
    # partitions, which would dominate the measured memory. Version 0 has no validate_only and is
    # left out.
    good = [dry_run(version) for version in API_SPECS[19].versions if version > 0] + [
        frame(encode_message(3, 12, MetadataRequest(topics=None))),
        frame(encode_message(18, 3, ApiVersionsRequest("hostile", "1"))),
    ]
    for number in range(count):
        bad = bytearray(source.choice(good))
        match number % 8:
            case 0:  # truncated, with the correct length
                body = bad[4 : source.randrange(4, len(bad))]
                yield struct.pack(">i", len(body)) + bytes(body)
            case 1:  # bits flipped
                for _ in range(source.randrange(1, 6)):
                    bad[source.randrange(4, len(bad))] ^= 1 << source.randrange(8)
                # The result may be a well-formed dry run with another name.
                yield bytes(bad)
            case 2:  # a length beyond every limit
                yield struct.pack(">i", source.randrange(104857601, 2**31 - 1)) + bytes(64)
            case 3:  # a negative length
                yield struct.pack(">i", -source.randrange(1, 2**31)) + bytes(16)
            case 4:  # an unknown API or version
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
    """Send each frame over a new connection, which the node may close; return the number sent."""
    host, _, port = address.rpartition(":")
    sent = 0
    for part in frames:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(part)
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
    """Send Metadata continuously; every response must be correct."""
    connection = await AsyncConnection.open(address)
    responded = 0
    while not stop.is_set():
        response = await connection.call(3, 12, MetadataRequest(topics=[]))
        assert len(response.brokers) == 1
        responded += 1
        await asyncio.sleep(0.005)
    connection.close()
    return responded


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "count", [10_000, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.soak])]
)
async def test_hostile_frames_crash_no_node_and_disturb_no_other_client(
    count: int, new_chroot: Callable[[], str]
) -> None:
    with Cluster(zookeeper=new_chroot(), brokers=1) as cluster:
        address = cluster.bootstrap_server(1)
        process = psutil.Process(cluster.brokers[1].pid)
        before = process.memory_info().rss
        stop = asyncio.Event()
        client = asyncio.create_task(well_behaved(address, stop))
        # Connections that send half a frame, or nothing, and stay open.
        idle = []
        for number in range(HALF_OPEN):
            _, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(frame(create_topics(["half"]))[: number % 30])
            idle.append(writer)
        frames = hostile_frames(count, SEED)
        sent = await asyncio.gather(*(attack(address, frames) for _ in range(WORKERS)))
        stop.set()
        responded = await client
        grown = process.memory_info().rss - before
        for writer in idle:
            writer.close()
        connection = await AsyncConnection.open(address)
        response = decode_message(19, 4, await connection.exchange(create_topics(["after"])))
        assert sum(sent) == count
        assert responded > 100
        assert grown < MEMORY_GROWTH_BYTES_MAX, f"{grown / 1e6:.0f} MB"
        assert response.topics[0].error_code == 0
        assert process.is_running()
        log = (cluster.data_dir / "nodes" / "1" / "node.log").read_text()
        assert "Traceback" not in log
