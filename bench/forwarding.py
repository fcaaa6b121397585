"""What forwarding costs: the same CreateTopics asked of the controller and of another broker.

Why: a broker that forwards adds a hop; one request at a time it may add at most a millisecond at
the median, and many at a time it should carry nearly what the controller itself carries. Every
request creates a fresh topic of one partition, and every answer is checked.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.frames import create_topics_frame, decode_answer, drive
from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster

_OUTSTANDING = (1, 32, 256)


@dataclass(frozen=True, slots=True)
class Load:
    """One measured load. `client_us`: the client's own processor time per request."""

    p50_ms: float
    per_s: float
    client_us: float


def check_created(answer: bytes) -> None:
    """Raise RuntimeError unless every topic of a CreateTopics v4 answer was created."""
    for topic in decode_answer(19, 4, answer).topics:
        if topic.error_code != 0:
            raise RuntimeError(f"{topic.name}: {topic.error_code} {topic.error_message}")


def fresh_frames(prefix: str, count: int) -> Iterator[bytes]:
    """Return `count` prebuilt requests, each for a topic of its own."""
    return iter([create_topics_frame([f"{prefix}-{n}"]) for n in range(count)])


def measure(address: str, prefix: str, *, connections: int, count: int) -> Load:
    """Create `count` topics, one a request, `connections` requests outstanding."""
    frames = fresh_frames(prefix, count)
    began, began_cpu = time.perf_counter(), time.process_time()
    latencies = asyncio.run(
        drive(address, connections=connections, frames=frames, check=check_created)
    )
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return Load(median(latencies) * 1e3, len(latencies) / took, took_cpu / len(latencies) * 1e6)


def two_addresses(cluster: Cluster) -> tuple[str, str]:
    """Return (the controller, a broker that forwards) as host:port."""
    controller = cluster.wait_for_controller()
    other = next(broker for broker in sorted(cluster.brokers) if broker != controller)
    return cluster.bootstrap_server(controller), cluster.bootstrap_server(other)


def run(plan: Plan) -> list[str]:
    """Measure three loads, direct and forwarded in turns."""
    lines = []
    with Cluster(brokers=3) as cluster:
        direct, forwarded = two_addresses(cluster)
        numbers = itertools.count()
        for outstanding in _OUTSTANDING:
            progress(f"forwarding: {outstanding} outstanding")
            count = 150 if outstanding == 1 else 1_000
            for address in (direct, forwarded):  # a warm-up each, thrown away
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
        f"{outstanding:>3} outstanding: forwarded carries {per_s[1] / per_s[0]:.2f} of direct "
        f"({per_s[1]:.0f}/s of {per_s[0]:.0f}/s); p50 {p50[1]:.2f} ms against {p50[0]:.2f} ms, "
        f"{p50[1] - p50[0]:+.2f} ms"
    )
