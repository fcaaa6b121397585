"""Failover step by step: detection, election, loading, first write, a leader for every partition.

Why: the configured session timeout is a fixed part of a failover; the rest depends on our code, and
may grow with the state that the next controller loads. Times are counted from the detection: the
moment when a candidate sends its claim. That moment and the durations of the election and of
loading are read from the nodes' events. Clusters with and without records (`bridgehead.data.plane`)
fail in turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.forwarding import check_created, two_addresses
from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, decode_message

_PARTITIONS = 100
_TOPICS_A_REQUEST = 20
_METADATA = 3
_METADATA_VERSION = 8
_PATIENCE_S = 60.0
_POLL_S = 0.02


def events_of(folder: Path, kind: str, since_ms: float) -> list[dict[str, Any]]:
    """Return all nodes' events of one kind since `since_ms`, oldest first."""
    events = []
    for path in folder.glob("evidence/run=*/node=*/*.jsonl"):
        for line in path.read_bytes().splitlines():
            if f'"kind":"{kind}"'.encode() in line:
                event = json.loads(line)
                if event["wall_ms"] >= since_ms:
                    events.append(event)
    return sorted(events, key=lambda event: event["wall_ms"])


async def fill(address: str, topics: int) -> None:
    """Create topics of 100 partitions, replication factor 3."""
    connection = await AsyncConnection.open(address)
    for at in range(0, topics, _TOPICS_A_REQUEST):
        names = [f"state-{n:04d}" for n in range(at, min(at + _TOPICS_A_REQUEST, topics))]
        request = create_topics(
            names, partitions=_PARTITIONS, replication_factor=3, timeout_ms=60_000
        )
        check_created(await connection.exchange(request))
    connection.close()


async def first_write_s(address: str) -> float:
    """Create one topic, with retries; return the time in seconds."""
    began = time.monotonic()
    connection = await AsyncConnection.open(address)
    response = b""
    while time.monotonic() < began + _PATIENCE_S:
        response = await connection.exchange(create_topics(["after-the-kill"], timeout_ms=60_000))
        if decode_message(19, 4, response).topics[0].error_code == 0:
            connection.close()
            return time.monotonic() - began
        await asyncio.sleep(0.05)
    check_created(response)
    raise RuntimeError("no write was acknowledged")


async def _leaderless(connection: AsyncConnection, topics: Sequence[int], dead: int) -> int:
    """Count the partitions of these topics that have no live leader."""
    names = [MetadataRequestTopic(name=f"state-{n:04d}") for n in topics]
    message = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    response = await connection.call(_METADATA, _METADATA_VERSION, message)
    return sum(
        max(0, _PARTITIONS - len(topic.partitions))
        + sum(partition.leader_id in (-1, dead) for partition in topic.partitions)
        for topic in response.topics
    )


async def all_led_s(address: str, topics: int, dead: int) -> float:
    """Wait until a broker shows a live leader for every partition; return the time in seconds.

    Polls only the topic that the controller handles last: reading 100,000 partitions again and
    again would slow down the nodes. Once this topic has leaders, reads all topics. If all their
    partitions have leaders, the result is the time at which this read was sent, because the client
    needs about a second to decode its response.
    """
    began = time.monotonic()
    connection = await AsyncConnection.open(address)
    while True:
        while await _leaderless(connection, [topics - 1], dead):
            if time.monotonic() > began + _PATIENCE_S:
                raise RuntimeError("partitions stayed without a leader")
            await asyncio.sleep(_POLL_S)
        led_s = time.monotonic() - began
        if not await _leaderless(connection, range(topics), dead):
            connection.close()
            return led_s


async def _both(address: str, topics: int, dead: int) -> tuple[float, float]:
    first, led = await asyncio.gather(first_write_s(address), all_led_s(address, topics, dead))
    return first, led


class Failover(NamedTuple):
    """Seconds after the detection; `elected_s` and `loaded_s` are durations."""

    first_write_s: float
    all_led_s: float
    elected_s: float
    loaded_s: float


def failover(topics: int, *, stores_records: bool) -> Failover:
    """Kill the controller of a cluster with `topics` times 100 partitions."""
    properties = {"bridgehead.data.plane": str(stores_records).lower()}
    with Cluster(brokers=3, properties=properties) as cluster:
        controller, other = two_addresses(cluster)
        asyncio.run(fill(controller, topics))
        broker_id = cluster.wait_for_controller()
        pid = cluster.brokers[broker_id].pid
        killed_ms = time.time() * 1e3
        os.kill(pid, signal.SIGKILL)
        first_s, led_s = asyncio.run(_both(other, topics, broker_id))
        claims = events_of(cluster.data_dir, "claim_sent", killed_ms)
        active = events_of(cluster.data_dir, "became_active", killed_ms)
    detected_s = (claims[0]["wall_ms"] - killed_ms) / 1e3
    return Failover(
        first_s - detected_s,
        led_s - detected_s,
        active[0]["elected_ms"] / 1e3,
        active[0]["loaded_ms"] / 1e3,
    )


def _compare(topics: int, rounds: int) -> str:
    """Fail clusters with and without records in turns; return one line."""
    with_records: list[Failover] = []
    without: list[Failover] = []
    for round_ in range(rounds):
        for stores_records, taken in ((True, with_records), (False, without)):
            progress(f"failover: {topics * _PARTITIONS} partitions, {stores_records=}, {round_=}")
            taken.append(failover(topics, stores_records=stores_records))

    def of(side: list[Failover], field: str) -> float:
        return median([getattr(taken, field) for taken in side])

    led, led_without = (of(side, "all_led_s") for side in (with_records, without))
    first, first_without = (of(side, "first_write_s") for side in (with_records, without))
    return (
        f"{topics * _PARTITIONS:,} partitions: all led {led / led_without:.2f} times as late as "
        f"without records ({led:.2f} s, {led_without:.2f} s); first write {first:.2f} s, "
        f"{first_without:.2f} s; loaded in {of(with_records, 'loaded_s'):.2f} s, "
        f"{of(without, 'loaded_s'):.2f} s"
    )


def run(plan: Plan) -> list[str]:
    """Measure with little, more and, unless `quick`, much state."""
    sizes = (10, 100) if plan.quick else (10, 100, 1_000)
    return [_compare(topics, plan.rounds(3)) for topics in sizes]
