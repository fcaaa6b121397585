"""CreateTopics of one topic each, from 64 connections through a broker that forwards.

Many independent programs would cause such a load. The client shares the processors with the nodes,
so its own processor time per request is also reported.
"""

from __future__ import annotations

from bench.forwarding import measure, two_addresses
from bench.report import Plan, median, progress, spread
from bridgehead.cluster import Cluster

_CONNECTIONS = 64


def run(plan: Plan) -> list[str]:
    """Measure several rounds after a warm-up."""
    with Cluster(brokers=3) as cluster:
        _, forwarded = two_addresses(cluster)
        measure(forwarded, "warm", connections=_CONNECTIONS, count=1_500)
        loads = []
        for round_ in range(plan.rounds(6)):
            progress(f"small creates: round {round_ + 1}")
            loads.append(
                measure(forwarded, f"small-{round_}", connections=_CONNECTIONS, count=3_000)
            )
    client_us = median([load.client_us for load in loads])
    return [
        f"{spread([load.per_s for load in loads], 'topics/s')} from {_CONNECTIONS} connections; "
        f"p50 {median([load.p50_ms for load in loads]):.1f} ms; the client itself uses "
        f"{client_us:.0f} us of processor time per request"
    ]
