"""Measures how long other clients wait while one client sends the largest requests of every API.

The client fills the arrays of a request with as many elements as a request may have. It sends the
requests of all APIs one after another: once as a user without rights, and once without an
authorizer. Meanwhile a client of each broker sends small requests. A result is the p99 and the
longest time of these requests, and its ratio to the longest time while the cluster is idle. Writes
are validated only; APIs that would write anyway are sent without rights only.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from bench.report import Plan, progress
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.kafka_wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from bridgehead.kafka_wire.schema import (
    BOOL,
    INT32,
    STRING,
    UUID,
    Array,
    Primitive,
    WireType,
    fields_of,
)
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, encode_message
from data_plane.records.batch import encode_batch
from data_plane.records.compression import Codec
from data_plane.records.record import NewRecord

ELEMENTS: Final = 100_000  # the default of bridgehead.request.elements.max
_RECORDS: Final = 500_000
_TOPIC: Final = "pauses"
_PROBE: Final = frame(encode_message(ApiKey.METADATA, 12, MetadataRequest(topics=[])))
_PROBE_EVERY_S: Final = 0.002
_IDLE_S: Final = 5.0
_RESPONSE_S: Final = 60.0
_AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:broker",
}
# Requests that write even if they only have unknown names, and logins.
_WRITES: Final = (ApiKey.CREATE_ACLS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_CONFIGS)
_LEFT_OUT: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.CONTROLLED_SHUTDOWN)


class Request(NamedTuple):
    """One request to send: its name in the results, and a function that returns its payload."""

    name: str
    payload: Callable[[], bytes]
    writes: bool = False


class Times(NamedTuple):
    """The times of the small requests during one request, of the slowest broker, in ms."""

    p99_ms: float
    longest_ms: float


def largest_requests(elements: int) -> Iterator[Request]:
    """Yield the requests: for each array of the newest version, and for an array in its element."""
    for spec in API_SPECS.values():
        if spec.key in _LEFT_OUT or spec.route is None:
            continue
        for path in _arrays(spec.request, spec.versions[-1]):
            payload = partial(_payload, spec, path, elements)
            yield Request(f"{spec.name} {'.'.join(path)}", payload, spec.key in _WRITES)
    yield Request(f"Produce of {_RECORDS} empty records", _empty_records)


def _payload(spec: ApiSpec, path: tuple[str, ...], elements: int) -> bytes:
    return encode_message(spec.key, spec.versions[-1], _filled(spec, path, elements))


def _empty_records() -> bytes:
    records = [NewRecord(-1, None, None)] * _RECORDS
    data = PartitionProduceData(0, encode_batch(records, codec=Codec.ZSTD))
    produce = ProduceRequest(
        acks=1, timeout_ms=10_000, topic_data=[TopicProduceData(_TOPIC, [data])]
    )
    return encode_message(ApiKey.PRODUCE, 9, produce)


def _arrays(struct_type: type[Any], version: int, depth: int = 0) -> Iterator[tuple[str, ...]]:
    for field in fields_of(struct_type):
        if version not in field.versions or not isinstance(field.type, Array):
            continue
        yield (field.name,)
        if isinstance(field.type.of, type) and depth == 0:
            for inner in _arrays(field.type.of, version, depth + 1):
                yield (field.name, *inner)


def _filled(spec: ApiSpec, path: tuple[str, ...], elements: int) -> Any:
    message = spec.request()
    for name, value in (("validate_only", True), ("acks", 1), ("timeout_ms", 1_000)):
        if hasattr(message, name):
            setattr(message, name, value)
    for name in ("group_id", "member_id", "key"):
        if hasattr(message, name):
            setattr(message, name, "pauses")
    owner: Any = message
    for name in path[:-1]:
        (field,) = (field for field in fields_of(type(owner)) if field.name == name)
        assert isinstance(field.type, Array)
        element = _element(field.type.of, 0)
        setattr(owner, name, [element])
        owner = element
    (field,) = (field for field in fields_of(type(owner)) if field.name == path[-1])
    assert isinstance(field.type, Array)
    rest = range(elements - len(path) + 1)  # All elements count, also those around the array.
    setattr(owner, path[-1], [_element(field.type.of, number) for number in rest])
    return message


def _element(kind: WireType, number: int) -> Any:
    if isinstance(kind, type):
        return kind(**{name: _element(of, number) for name, of in _fields(kind)})
    if kind is STRING:
        return f"n{number}"
    if kind is UUID:
        return number.to_bytes(16, "big")
    assert isinstance(kind, Primitive)
    if kind.code is None or kind is BOOL:
        return kind.zero
    if kind.size == 1:
        return 1  # A code such as ANY; a broker closes the connection for an unknown one.
    return number if kind.size >= INT32.size else number & 0x7F


_filled_fields: Final[dict[type[Any], tuple[tuple[str, WireType], ...]]] = {}


def _fields(struct_type: type[Any]) -> tuple[tuple[str, WireType], ...]:
    """Return the fields to fill. A topic has a name and no id."""
    if struct_type in _filled_fields:
        return _filled_fields[struct_type]
    fields = {
        field.name: field.type
        for field in fields_of(struct_type)
        if field.tag is None and not isinstance(field.type, (Array, type))
    }
    if "name" in fields:
        fields.pop("topic_id", None)
    _filled_fields[struct_type] = tuple(fields.items())
    return _filled_fields[struct_type]


def _probe(addresses: list[str], control: Connection) -> None:
    """Send small requests to every broker; after each message of `control`, send the times.

    The times include those of a request that began after the message: if a broker still works on
    the large request, they include its whole pause.
    """
    times: list[list[float]] = [[] for _ in addresses]
    began: list[float] = [0.0 for _ in addresses]

    def send(number: int) -> None:
        host, _, port = addresses[number].rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                began_s = time.monotonic()
                client.sendall(_PROBE)
                (length,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
                client.recv(length, socket.MSG_WAITALL)
                times[number].append(time.monotonic() - began_s)
                began[number] = began_s
                time.sleep(_PROBE_EVERY_S)

    for number in range(len(addresses)):
        threading.Thread(target=send, args=(number,), daemon=True).start()
    while control.recv() is not None:
        asked_s = time.monotonic()
        while min(began) < asked_s:
            time.sleep(_PROBE_EVERY_S)
        done = [list(durations) for durations in times]
        for durations, sent in zip(times, done, strict=True):
            del durations[: len(sent)]
        control.send(done)


async def _exchange(address: str, payload: bytes) -> None:
    connection = await AsyncConnection.open(address)
    connection.send(payload)
    try:
        await connection.receive_or_none(_RESPONSE_S)
    except TimeoutError:
        progress("no response")
    finally:
        connection.close()


class _Probes:
    """A process that sends the small requests."""

    def __init__(self, addresses: list[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._control, other = context.Pipe()
        self._process = context.Process(target=_probe, args=(addresses, other), daemon=True)
        self._process.start()
        self.take()

    def take(self) -> Times:
        """Return the times since the last call."""
        self._control.send("take")
        done: list[list[float]] = self._control.recv()
        p99 = max(sorted(durations)[int(0.99 * len(durations))] for durations in done)
        return Times(p99 * 1000, max(map(max, done)) * 1000)

    def stop(self) -> None:
        """End the process."""
        self._control.send(None)
        self._process.join()


def _measure(
    properties: dict[str, str], requests: list[Request]
) -> tuple[Times, dict[str, Times], int]:
    """Return the times while idle and during each request, and the lost sessions."""
    with Cluster(brokers=3, properties=properties) as cluster:
        controller = cluster.wait_for_controller()
        target = next(broker for broker in sorted(cluster.brokers) if broker != controller)
        address = cluster.bootstrap_server(target)
        asyncio.run(_exchange(address, create_topics([_TOPIC], replication_factor=3)))
        probes = _Probes([cluster.bootstrap_server(broker) for broker in cluster.brokers])
        try:
            time.sleep(_IDLE_S)
            idle = probes.take()
            during = {}
            for request in requests:
                payload = request.payload()
                probes.take()
                began = time.monotonic()
                asyncio.run(_exchange(address, payload))
                during[request.name] = probes.take()
                took_s = time.monotonic() - began
                progress(f"{request.name}: {during[request.name]}, {took_s:.1f} s")
        finally:
            probes.stop()
        events = cluster.evidence_dir.rglob("*.jsonl")
        lost = sum(path.read_bytes().count(b'"session_lost"') for path in events)
        return idle, during, lost


def run(plan: Plan) -> list[str]:
    """Measure without rights and without an authorizer."""
    elements = ELEMENTS // 4 if plan.quick else ELEMENTS
    requests = list(largest_requests(elements))
    lines = []
    for name, properties, sent in (
        ("without rights", _AUTHORIZER, requests),
        ("no authorizer", {}, [request for request in requests if not request.writes]),
    ):
        progress(f"pauses: {name}")
        idle, during, lost = _measure(properties, sent)
        lines.append(
            f"{name}, {elements} elements: idle p99 {idle.p99_ms:.1f} ms, longest "
            f"{idle.longest_ms:.1f} ms; {lost} lost sessions"
        )
        slowest = sorted(during.items(), key=lambda row: -row[1].longest_ms)
        lines += [
            f"  {request}: p99 {times.p99_ms:.0f} ms, longest {times.longest_ms:.0f} ms "
            f"({times.longest_ms / idle.longest_ms:.1f} times idle)"
            for request, times in slowest
        ]
    return lines
