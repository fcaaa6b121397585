"""Creates topics one after another: our admin client compared with released clients.

The clients use the same cluster in turn, with their default settings. In each turn a client creates
ten topics, one after another. Work that the client or a broker does after a response therefore
delays the next create of the same client. A round goes through every order of the clients, and each
client has one turn in each order.

A ratio compares the median times of one round; the median of these ratios is reported. A create's
time includes the client's own processor time, which is reported as well. confluent-kafka requests
CreateTopics version 4; the other two request version 7, whose response has the topic's configs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import confluent_kafka.admin
from kafka import KafkaAdminClient

from bench.report import Plan, median, progress, spread
from bridgehead.admin import AdminClient, NewTopicWithReplication
from bridgehead.cluster import Cluster

_WARM_UP = 20
_IN_A_TURN = 10
_ROUNDS = 12
Create = Callable[[str], object]


class Times(NamedTuple):
    """Milliseconds for each create of one client in one round."""

    wall: list[float]
    processor: list[float]


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
        for number in range(_WARM_UP):
            for name, create in clients.items():
                create(f"warm-{name}-{number}")
        rounds: list[dict[str, Times]] = []
        for number in range(plan.rounds(_ROUNDS)):
            progress(f"admin clients: round {number + 1}")
            rounds.append(_round(clients, f"round-{number}"))
        ours.close()
        python.close()
    return [*_ratios(rounds), *(_times(rounds, name) for name in clients)]


def _round(clients: dict[str, Create], prefix: str) -> dict[str, Times]:
    """For every order of the clients, let each client take one turn."""
    times = {name: Times([], []) for name in clients}
    for turn, order in enumerate(itertools.permutations(clients)):
        for name in order:
            for number in range(_IN_A_TURN):
                began, used = time.perf_counter(), time.process_time()
                clients[name](f"{prefix}-{turn}-{name}-{number}")
                times[name].wall.append((time.perf_counter() - began) * 1000)
                times[name].processor.append((time.process_time() - used) * 1000)
    return times


def _ratios(rounds: Sequence[dict[str, Times]]) -> Iterator[str]:
    for name in rounds[0]:
        if name != "ours":
            ratios = [median(round_[name].wall) / median(round_["ours"].wall) for round_ in rounds]
            yield f"time of {name} / time of ours: {spread(ratios, '', 2)}"


def _times(rounds: Sequence[dict[str, Times]], name: str) -> str:
    wall = spread([median(round_[name].wall) for round_ in rounds], "ms", 1)
    processor = spread([median(round_[name].processor) for round_ in rounds], "ms", 2)
    return f"{name}: {wall} for a create; processor time of the client {processor}"
