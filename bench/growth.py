"""One small create in a small cluster and in a large one: the time must not grow with the topics.

One client sends CreateTopics requests with one topic each to a broker that forwards, one request
after another. The topics that make the clusters small and large are created in bulk.
"""

from __future__ import annotations

import asyncio

from bench.bulk_creates import create
from bench.forwarding import measure, two_addresses
from bench.report import Plan, median, progress
from bridgehead.cluster import Cluster

_BULK = 1_000
_CREATES = 200


def run(plan: Plan) -> list[str]:
    """Measure with 10,000 and 100,000 topics; if `quick`, with 2,000 and 20,000."""
    sizes = (2_000, 20_000) if plan.quick else (10_000, 100_000)
    times: list[list[float]] = []
    with Cluster(brokers=3) as cluster:
        controller, forwarding = two_addresses(cluster)
        bulks = 0
        for size in sizes:
            while bulks * _BULK < size:
                asyncio.run(create(controller, f"bulk{bulks}"))
                bulks += 1
            progress(f"growth: {size} topics")
            measure(forwarding, f"warm{size}", connections=1, count=_CREATES)
            rounds = range(plan.rounds(4))
            loads = [
                measure(forwarding, f"at{size}-{n}", connections=1, count=_CREATES) for n in rounds
            ]
            times.append([load.p50_ms for load in loads])
    small, large = (median(time) for time in times)
    return [
        f"a create takes {large / small:.2f} times as long with {sizes[1]} topics as with "
        f"{sizes[0]}: p50 {large:.2f} ms against {small:.2f} ms"
    ]
