"""Small creates with a policy, compared with the same creates without one.

Two clusters run at the same time and take turns. One has the policy `TopicLimits`, with a maximum
number of topics and of partitions per topic that no request exceeds.
"""

from __future__ import annotations

from typing import Final

from bench.forwarding import Load, measure, two_addresses
from bench.report import Plan, median, progress, spread
from bridgehead.cluster import Cluster

_CONNECTIONS: Final = 64
_LIMITS: Final = {
    "topic.management.policy.class.name": "bridgehead.policy.limits.TopicLimits",
    "bridgehead.policy.limits.topics.max": "1000000",
    "bridgehead.policy.limits.partitions.max": "100",
}


def run(plan: Plan) -> list[str]:
    """Measure several rounds after a warm-up, from 64 connections to a broker that forwards."""
    with Cluster(brokers=3) as free, Cluster(brokers=3, properties=_LIMITS) as limited:
        addresses = {name: two_addresses(cluster)[1] for name, cluster in _named(free, limited)}
        loads: dict[str, list[Load]] = {name: [] for name in addresses}
        for address in addresses.values():
            measure(address, "warm", connections=_CONNECTIONS, count=500)
        for round_ in range(plan.rounds(6)):
            progress(f"policies: round {round_ + 1}")
            for name, address in addresses.items():
                load = measure(address, f"r{round_}", connections=_CONNECTIONS, count=1_500)
                loads[name].append(load)
    rates = {name: [load.per_s for load in runs] for name, runs in loads.items()}
    p50 = {name: median([load.p50_ms for load in runs]) for name, runs in loads.items()}
    ratio = median(rates["limited"]) / median(rates["free"])
    return [
        f"with TopicLimits, {ratio:.2f} of the rate without a policy: "
        f"{spread(rates['limited'], 'topics/s')} against {spread(rates['free'], 'topics/s')}; "
        f"p50 {p50['limited']:.1f} ms against {p50['free']:.1f} ms"
    ]


def _named(free: Cluster, limited: Cluster) -> tuple[tuple[str, Cluster], ...]:
    return ("free", free), ("limited", limited)
