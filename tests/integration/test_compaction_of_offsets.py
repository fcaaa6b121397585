"""A broker compacts `__consumer_offsets`; committed offsets survive a kill of the broker."""

from __future__ import annotations

import time
from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.cluster import Cluster

PROPERTIES = {
    "bridgehead.data.plane": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "4096",
    "log.cleaner.backoff.ms": "200",
}


def until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.long
def test_compacted_offsets_survive_a_kill() -> None:
    with Cluster(brokers=1, properties=PROPERTIES) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(30)
        partitions = [confluent_kafka.TopicPartition("t", number) for number in (0, 1)]

        def consumer(group: str) -> confluent_kafka.Consumer:
            return confluent_kafka.Consumer(
                {**servers, "group.id": group, "enable.auto.commit": False}
            )

        def commit(group: str, offset: int) -> None:
            wanted = [confluent_kafka.TopicPartition("t", n, offset + n) for n in (0, 1)]
            (first, second) = writer.commit(offsets=wanted, asynchronous=False)
            assert first.error is second.error is None

        def committed(group: str) -> list[int]:
            reader = consumer(group)
            offsets = [partition.offset for partition in reader.committed(partitions, timeout=60)]
            reader.close()
            return offsets

        for group in ("once", "often"):
            writer = consumer(group)
            writer.committed(partitions, timeout=60)  # waits for the coordinator
            for offset in range(1 if group == "once" else 200):
                commit(group, 10 + offset)
            writer.close()
        (folder,) = cluster.data_dir.glob("**/__consumer_offsets-0")
        until((folder.parent / "cleaner-offset-checkpoint").exists)
        until(lambda: sum(path.stat().st_size for path in folder.glob("*.log")) < 10_000)
        assert committed("once") == [10, 11]
        cluster.kill_node(1)
        cluster.start_node(1)
        assert committed("once") == [10, 11]
        assert committed("often") == [209, 210]
