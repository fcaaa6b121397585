"""Checks that brokers do not return stale metadata after an acknowledged write.

Each pair creates a topic through one broker and then requests its metadata from another (or from
any broker that is up, if this one is down). A response without the topic is stale. Brokers apply
metadata with a configured delay (`bridgehead.metadata.delay.ms`).
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bridgehead.cluster import ClientHistory
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.recorded_client import RecordedClient
from chaos.workload import Place, Progress, Workload
from chaos.workloads.topics import addresses

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
    unfinished: list[str] = field(default_factory=list)  # no broker answered the read in time

    @property
    def read(self) -> int:
        """The number of pairs that were read."""
        return self.progress.acknowledged


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
        try:
            response = await client.call(writer, CREATE_TOPICS, CREATE_TOPICS_VERSION, message)
        except (OSError, EOFError):
            counts.unacknowledged += 1
            await asyncio.sleep(0.05)  # The broker may be gone for a while.
            continue
        if response.topics[0].error_code != NONE:
            counts.unacknowledged += 1
            continue
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
            response = await client.call(broker, METADATA, METADATA_VERSION, message)
        except (OSError, EOFError):
            if time.monotonic() > deadline:
                counts.unfinished.append(name)
                return
            await asyncio.sleep(0.02)
            continue
        counts.progress.add()
        if response.topics[0].error_code == UNKNOWN_TOPIC:
            counts.stale.append(name)
        return


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


class ReadAfterWrite:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._counts = Counts(place.progress)
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        at = addresses(self._place)
        numbers = itertools.takewhile(lambda _: not self._stopped, itertools.count())
        sources = [random.Random(self._place.source.random()) for _ in range(WORKERS)]
        await asyncio.gather(
            *(pairs(at, numbers, self._counts, source, self._place.history) for source in sources)
        )

    async def wrong(self) -> list[str]:
        counts = self._counts
        stale = [f"the topic {name} was acknowledged but not read" for name in counts.stale]
        if stale:
            stale.insert(0, f"{len(stale)} of {counts.read} reads were stale")
        return stale + [f"no broker answered the read of {name}" for name in counts.unfinished]


READ_AFTER_WRITE = Workload(
    name="read_after_write",
    does="Clients create a topic at one broker and read it at another broker, which must know it.",
    start=ReadAfterWrite,
    properties={
        name: value
        for name, value in properties("cluster", "local").items()
        if name != "zookeeper.session.timeout.ms"
    },
    node_properties=delays(),
)
