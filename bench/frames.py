"""A client that costs little: prebuilt frames over plain sockets, answers counted and checked.

Real clients take longer to make a request than a node takes to answer it; a benchmark of the
node must not measure them.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

_LENGTH = struct.Struct(">i")


def request_frame(api_key: int, version: int, correlation_id: int, message: Any) -> bytes:
    """Return a whole frame: length, header, body."""
    header = RequestHeader(api_key, version, correlation_id, "bench")
    payload = encode_request_header(header) + encode_request(api_key, version, message)
    return _LENGTH.pack(len(payload)) + payload


def create_topics_frame(
    names: list[str],
    *,
    correlation_id: int = 1,
    partitions: int = 1,
    replication_factor: int = 1,
    version: int = 4,
    timeout_ms: int = 30_000,
) -> bytes:
    """Return a CreateTopics request of equal topics."""
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
        for name in names
    ]
    message = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return request_frame(19, version, correlation_id, message)


class Connection:
    """One socket; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str) -> Connection:
        """Connect to host:port."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 26))

    async def ask(self, frame: bytes) -> bytes:
        """Send a frame, return the answer's header and body."""
        self._writer.write(frame)
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return await self._reader.readexactly(length)

    async def close(self) -> None:
        """Close the socket."""
        self._writer.close()


def decode_answer(api_key: int, version: int, answer: bytes) -> Any:
    """Return the response message of an answer."""
    _, at = decode_response_header(api_key, version, answer)
    return decode_response(api_key, version, answer, at)


async def drive(
    address: str,
    *,
    connections: int,
    frames: Iterator[bytes],
    check: Callable[[bytes], None],
) -> list[float]:
    """Send all frames over `connections` sockets, each one at a time; return every latency in s."""
    latencies: list[float] = []

    async def worker() -> None:
        connection = await Connection.open(address)
        for frame in frames:
            began = time.perf_counter()
            answer = await connection.ask(frame)
            latencies.append(time.perf_counter() - began)
            check(answer)
        await connection.close()

    await asyncio.gather(*(worker() for _ in range(connections)))
    return latencies
