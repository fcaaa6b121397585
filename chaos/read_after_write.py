"""Checks that brokers do not return stale metadata after an acknowledged write.

Each pair creates a topic through one broker and then requests its metadata from another (or from
any broker that is up, if this one is down). A response without the topic is stale. Brokers apply
metadata with a configured delay (`bridgehead.metadata.delay.ms`), and controllers are killed.

    python -m chaos.read_after_write [--pairs N] [--blocking cluster|controller]
        [--reads local|controller] [--kills N]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bridgehead.cluster import ClientHistory, Cluster
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from chaos.recorded_client import RecordedClient
from chaos.workload import Progress
from bridgehead.raw_client.asynchronous import ClusterClient

METADATA, METADATA_VERSION = 3, 12
CREATE_TOPICS, CREATE_TOPICS_VERSION = 19, 7
NONE, UNKNOWN_TOPIC = 0, 3
WORKERS: Final = 32
DELAYS_MS: Final = {1: 0, 2: 20, 3: 40}
_READ_WITHIN_S: Final = 60.0


@dataclass(slots=True)
class Counts:
    """The results. `stale` and `unanswered` name topics."""

    progress: Progress = field(default_factory=Progress)  # counts the pairs that were read
    unacknowledged: int = 0  # writes without a success; their topics are not read
    stale: list[str] = field(default_factory=list)  # acknowledged, but missing in the read
    unanswered: list[str] = field(default_factory=list)  # no broker answered the read in time
    longest_write_s: float = 0.0

    @property
    def read(self) -> int:
        """The number of pairs that were read."""
        return self.progress.acknowledged

    def summary(self) -> str:
        """Return one line of text."""
        return (
            f"{self.read} pairs read: {len(self.stale)} stale; {len(self.unanswered)} reads "
            f"unanswered; {self.unacknowledged} writes not acknowledged; the longest write took "
            f"{self.longest_write_s:.2f} s"
        )


async def pairs(
    addresses: Mapping[int, str],
    numbers: Iterator[int],
    counts: Counts,
    source: random.Random,
    history: ClientHistory | None = None,
) -> None:
    """Run one worker: write and read one pair for each number."""
    plain = ClusterClient(addresses, "read-after-write")
    client = plain if history is None else RecordedClient(plain, history)
    for number in numbers:
        writer, reader = source.sample(sorted(addresses), 2)
        name = f"pair-{number}"
        message = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)],
            timeout_ms=30_000,
        )
        began_s = time.monotonic()
        try:
            answer = await client.call(writer, CREATE_TOPICS, CREATE_TOPICS_VERSION, message)
        except (OSError, EOFError):
            counts.unacknowledged += 1
            await asyncio.sleep(0.05)  # The broker may be gone for a while.
            continue
        if answer.topics[0].error_code != NONE:
            counts.unacknowledged += 1
            continue
        counts.longest_write_s = max(counts.longest_write_s, time.monotonic() - began_s)
        await _read(client, name, [reader, *(b for b in addresses if b != reader)], counts)
    client.close()


async def _read(
    client: ClusterClient | RecordedClient, name: str, brokers: list[int], counts: Counts
) -> None:
    """Read from one broker, or from the next one if it is down."""
    topic = MetadataRequestTopic(name=name)
    message = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
    deadline = time.monotonic() + _READ_WITHIN_S
    for broker in itertools.cycle(brokers):
        try:
            answer = await client.call(broker, METADATA, METADATA_VERSION, message)
        except (OSError, EOFError):
            if time.monotonic() > deadline:
                counts.unanswered.append(name)
                return
            await asyncio.sleep(0.02)
            continue
        counts.progress.add()
        if answer.topics[0].error_code == UNKNOWN_TOPIC:
            counts.stale.append(name)
        return


async def run(cluster: Cluster, count: int, *, kills: int = 0, seed: int = 1) -> Counts:
    """Write and read `count` pairs; meanwhile kill and restart `kills` controllers."""
    addresses = {broker: cluster.bootstrap_server(broker) for broker in cluster.brokers}
    counts, source = Counts(), random.Random(seed)
    # A write that is not acknowledged is replaced by another pair.
    numbers = itertools.takewhile(lambda _: counts.read < count, itertools.count())
    workers = [
        asyncio.create_task(pairs(addresses, numbers, counts, random.Random(source.random())))
        for _ in range(WORKERS)
    ]
    for kill in range(1, kills + 1):
        due = count * kill // (kills + 1)
        while counts.read < due and not all(w.done() for w in workers):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        killed = await asyncio.to_thread(cluster.kill_controller)
        await asyncio.to_thread(cluster.start_node, killed)
    await asyncio.gather(*workers)
    return counts


def properties(blocking: str, reads: str) -> dict[str, str]:
    """Return the properties of every broker."""
    return {
        "bridgehead.metadata.blocking": blocking,
        "bridgehead.metadata.reads": reads,
        "zookeeper.session.timeout.ms": "2000",
        "auto.create.topics.enable": "false",
    }


def delays(factor: int = 1) -> dict[int, dict[str, str]]:
    """Return each broker's metadata delay."""
    return {
        broker: {"bridgehead.metadata.delay.ms": str(factor * delay)}
        for broker, delay in DELAYS_MS.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the counts; return 1 if reads must be consistent, but one was stale or unanswered."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--blocking", choices=("cluster", "controller"), default="cluster")
    parser.add_argument("--reads", choices=("local", "controller"), default="local")
    parser.add_argument("--kills", type=int, default=2)
    given = parser.parse_args(arguments)
    with Cluster(
        properties=properties(given.blocking, given.reads), node_properties=delays()
    ) as cluster:
        counts = asyncio.run(run(cluster, given.pairs, kills=given.kills))
    sys.stdout.write(f"blocking={given.blocking} reads={given.reads}: {counts.summary()}\n")
    consistent = given.blocking == "cluster" or given.reads == "controller"
    return 1 if consistent and (counts.stale or counts.unanswered) else 0


if __name__ == "__main__":
    sys.exit(main())
