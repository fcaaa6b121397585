"""The cost of forwarding: the same CreateTopics sent to the controller and to another broker.

Why: forwarding adds a network hop. With one request outstanding, it should add at most 0.25 ms to
the median latency. With many requests outstanding, it should hardly reduce the throughput. Every
request creates a new topic of one partition.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster
from bridgehead.raw_client.asynchronous import drive
from bridgehead.raw_client.codec import create_topics, decode_message

_OUTSTANDING = (1, 32, 256)


@dataclass(frozen=True, slots=True)
class Load:
    """One measured load. `client_us` is the client's own processor time per request."""

    p50_ms: float
    per_s: float
    client_us: float


def check_created(response: bytes) -> None:
    """Raise RuntimeError unless a CreateTopics v4 response is a success."""
    for topic in decode_message(19, 4, response).topics:
        if topic.error_code != 0:
            raise RuntimeError(f"{topic.name}: {topic.error_code} {topic.error_message}")


def new_topics(prefix: str, count: int) -> Iterator[bytes]:
    """Return `count` prebuilt requests, each for one new topic."""
    return iter([create_topics([f"{prefix}-{n}"]) for n in range(count)])


def measure(address: str, prefix: str, *, connections: int, count: int) -> Load:
    """Create `count` topics, one per request, with `connections` requests outstanding."""
    requests = new_topics(prefix, count)
    began, began_cpu = time.perf_counter(), time.process_time()
    latencies = asyncio.run(
        drive(address, connections=connections, requests=requests, check=check_created)
    )
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return Load(median(latencies) * 1e3, len(latencies) / took, took_cpu / len(latencies) * 1e6)


def two_addresses(cluster: Cluster) -> tuple[str, str]:
    """Return the addresses of the controller and of a broker that forwards."""
    controller = cluster.wait_for_controller()
    other = next(broker for broker in sorted(cluster.brokers) if broker != controller)
    return cluster.bootstrap_server(controller), cluster.bootstrap_server(other)


def run(plan: Plan) -> list[str]:
    """Measure three loads, alternating direct and forwarded."""
    lines = []
    with Cluster(brokers=3) as cluster:
        direct, forwarded = two_addresses(cluster)
        numbers = itertools.count()
        for outstanding in _OUTSTANDING:
            progress(f"forwarding: {outstanding} outstanding")
            count = 150 if outstanding == 1 else 1_000
            for address in (direct, forwarded):  # warm-up, discarded
                measure(address, f"warm-{next(numbers)}", connections=outstanding, count=count // 2)
            loads: dict[str, list[Load]] = {direct: [], forwarded: []}
            for _ in range(plan.rounds(4)):
                for address, done in loads.items():
                    prefix = f"fwd-{next(numbers)}"
                    done.append(measure(address, prefix, connections=outstanding, count=count))
            lines.append(_line(outstanding, loads[direct], loads[forwarded]))
    return lines


def _line(outstanding: int, direct: list[Load], forwarded: list[Load]) -> str:
    p50 = [median([load.p50_ms for load in loads]) for loads in (direct, forwarded)]
    per_s = [median([load.per_s for load in loads]) for loads in (direct, forwarded)]
    return (
        f"{outstanding:>3} outstanding: forwarded, {per_s[1] / per_s[0]:.2f} of the direct rate "
        f"({per_s[1]:.0f}/s of {per_s[0]:.0f}/s); p50 {p50[1]:.2f} ms against {p50[0]:.2f} ms, "
        f"{p50[1] - p50[0]:+.2f} ms"
    )
