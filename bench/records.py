"""Measures Produce: records per second, the time of one record, and admin requests under load.

The same confluent-kafka producer (acks=all, three replicas) writes to our three brokers and, if the
jars (`make kafka-jars`) and Java 17 to 23 exist, to three brokers of a live Kafka 3.9.1. A record
has 1,000 bytes. Batches of 16,000 bytes also go to a bare asyncio server that echoes them. The echo
shows what Python and the network cost without a log and without a protocol.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Plan, progress
from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.node_plan import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip

_RECORD: Final = bytes(1000)
_BATCH: Final = bytes(16_000)
_LOAD_PER_S: Final = 500  # records per second while admin requests are measured


class Result(NamedTuple):
    """Records per second; in ms, the p99 of single records and the medians of admin requests."""

    per_s: float
    p99_ms: float
    idle_ms: float
    loaded_ms: float


def _producer(servers: str, **options: object) -> confluent_kafka.Producer:
    settings = {"bootstrap.servers": servers, "acks": "all", "log_level": 0}
    return confluent_kafka.Producer({**settings, **options})


def _throughput(servers: str, count: int) -> float:
    producer = _producer(servers, **{"linger.ms": 5, "queue.buffering.max.messages": count})
    began = time.monotonic()
    for _ in range(count):
        producer.produce("bench", _RECORD)
    assert producer.flush(300) == 0
    return count / (time.monotonic() - began)


def _p99(durations_s: list[float]) -> float:
    return statistics.quantiles(durations_s, n=100)[98] * 1000


def _timed(step: Callable[[], object], count: int) -> list[float]:
    durations = []
    for _ in range(count):
        began = time.monotonic()
        step()
        durations.append(time.monotonic() - began)
    return durations


def _one_by_one(servers: str, count: int) -> float:
    producer = _producer(servers, **{"linger.ms": 0})

    def one() -> None:
        producer.produce("bench", _RECORD)
        assert producer.flush(60) == 0

    _timed(one, 50)  # connects and warms up
    return _p99(_timed(one, count))


@contextmanager
def _load(servers: str) -> Iterator[None]:
    """Produce `_LOAD_PER_S` records per second."""
    stop = threading.Event()

    def produce() -> None:
        producer = _producer(servers, **{"linger.ms": 0})
        while not stop.wait(1 / _LOAD_PER_S):
            producer.produce("bench", _RECORD)
            producer.poll(0)
        producer.flush(60)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _measure(servers: str, records: int, singles: int, creations: int) -> Result:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic("bench", 3, 3)])["bench"].result(60)
    numbers = iter(range(10**6))

    def create() -> None:
        name = f"t{next(numbers)}"
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)

    _throughput(servers, records // 5)  # warms up
    per_s, p99_ms = _throughput(servers, records), _one_by_one(servers, singles)
    _timed(create, 20)
    idle = statistics.median(_timed(create, creations))
    with _load(servers):
        loaded = statistics.median(_timed(create, creations))
    return Result(per_s, p99_ms, idle * 1000, loaded * 1000)


def _serve_echo(ready: Connection) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def _echoed(port: int, batches: int) -> tuple[float, float]:
    """Return records per second and the p99 of a batch, with one batch in flight at a time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    durations = []
    began = time.monotonic()
    for _ in range(batches):
        sent = time.monotonic()
        writer.write(_BATCH)
        await reader.readexactly(len(_BATCH))
        durations.append(time.monotonic() - sent)
    per_s = batches * len(_BATCH) / len(_RECORD) / (time.monotonic() - began)
    writer.close()
    return per_s, _p99(durations)


def _echo(batches: int) -> tuple[float, float]:
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve_echo, args=(there,))
    process.start()
    try:
        return asyncio.run(_echoed(here.recv(), batches))
    finally:
        process.kill()
        process.join()


def _on_kafka(sizes: tuple[int, int, int]) -> Result:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        zookeeper = EmbeddedZooKeeper(Path(folder) / "zk", [Ports().choose()], java=find_java())
        zookeeper.start()
        try:
            zookeeper.wait_until_serving()
            with kafka_brokers(Path(folder) / "kafka", zookeeper.connect, (1, 2, 3)) as servers:
                return _measure(servers, *sizes)
        finally:
            zookeeper.stop()


def _line(name: str, result: Result) -> str:
    return (
        f"{name}: {result.per_s:,.0f} records/s; p99 of single records {result.p99_ms:.1f} ms; "
        f"CreateTopics idle {result.idle_ms:.1f} ms, under load {result.loaded_ms:.1f} ms "
        f"({result.loaded_ms / result.idle_ms:.2f} times)"
    )


def run(plan: Plan) -> list[str]:
    """Measure the echo, our brokers and Kafka, one after another."""
    sizes = (10_000, 200, 30) if plan.quick else (50_000, 1_000, 100)
    per_s, p99_ms = _echo(sizes[0] // 16)
    lines = [f"asyncio echo: {per_s:,.0f} records/s; p99 of a batch of 16 records {p99_ms:.1f} ms"]
    progress("records: ours")
    with Cluster(brokers=3, properties={"bridgehead.data.plane": "true"}) as cluster:
        ours = _measure(cluster.bootstrap_servers, *sizes)
    lines.append(_line("ours", ours))
    lines.append(f"ours to echo: {ours.per_s / per_s:.3f}")
    if (reason := reason_to_skip()) is not None:
        return [*lines, f"Kafka SKIPPED: {reason}"]
    progress("records: Kafka 3.9.1")
    kafka = _on_kafka(sizes)
    return [
        *lines,
        _line("Kafka 3.9.1", kafka),
        f"ours / Kafka: {ours.per_s / kafka.per_s:.3f} of the records/s, "
        f"{ours.p99_ms / kafka.p99_ms:.1f} times its p99",
    ]
