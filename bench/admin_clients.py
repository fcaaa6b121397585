"""Creates topics one after another: our admin client compared with released clients.

The clients take turns at every create, in the same cluster and with their default settings. They
take turns in every order, because brokers still work on a create after its response. A create's
time includes the client's own processor time. A ratio compares two median times.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import confluent_kafka.admin
from kafka import KafkaAdminClient

from bench.report import Plan, median, progress, spread
from bridgehead.admin import AdminClient, NewTopicWithReplication
from bridgehead.cluster import Cluster

_WARM_UP = 20
_CREATES = 100
Create = Callable[[str], object]


def run(plan: Plan) -> list[str]:
    """Measure several rounds after a warm-up."""
    with Cluster(brokers=3) as cluster:
        servers = cluster.bootstrap_servers
        ours = AdminClient({"bootstrap.servers": servers})
        python = KafkaAdminClient(bootstrap_servers=servers.split(","))
        confluent = confluent_kafka.admin.AdminClient(
            {"bootstrap.servers": servers, "log_level": 0}
        )
        clients: dict[str, Create] = {
            "ours": lambda name: ours.create_topic(NewTopicWithReplication(name, 1, 1)),
            "kafka-python": lambda name: python.create_topics(
                {name: {"num_partitions": 1, "replication_factor": 1}}
            ),
            "confluent-kafka": lambda name: confluent.create_topics(
                [confluent_kafka.admin.NewTopic(name, 1, 1)]
            )[name].result(60),
        }
        _round(clients, "warm", _WARM_UP)
        medians: dict[str, list[float]] = {name: [] for name in clients}
        for number in range(plan.rounds(6)):
            progress(f"admin clients: round {number + 1}")
            for name, times in _round(clients, f"round-{number}", _CREATES).items():
                medians[name].append(median(times))
        ours.close()
        python.close()
    middle = {name: median(each) for name, each in medians.items()}
    return [
        *(
            f"time of {name} / time of ours: {middle[name] / middle['ours']:.2f}"
            for name in clients
            if name != "ours"
        ),
        *(f"{name}: {spread(each, 'ms', 1)} for a create" for name, each in medians.items()),
    ]


def _round(clients: dict[str, Create], prefix: str, count: int) -> dict[str, list[float]]:
    """Return the milliseconds of every create of every client."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    orders = itertools.cycle(itertools.permutations(clients))
    for number, order in zip(range(count), orders, strict=False):
        for name in order:
            began = time.perf_counter()
            clients[name](f"{prefix}-{name}-{number}")
            times[name].append((time.perf_counter() - began) * 1000)
    return times
