"""Three replicas keep every record that was acknowledged with acks=all. The judge confirms it."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from judge.verdicts import Verdict
from tests.integration.pipeline_runs import failed, judged
from tests.integration.processes import wait_until

PROPERTIES: Final = {
    "bridgehead.data.plane": "true",
    "zookeeper.session.timeout.ms": "6000",
    "replica.fetch.backoff.ms": "200",
}
MUTANT_NODE: Final = module_command("chaos.mutant_node", "--mutants")
TOPIC: Final = "orders"
PARTITIONS: Final = 3


class Records:
    """Produces to all partitions with acks=all until it is stopped.

    It remembers the acknowledged records.
    """

    def __init__(self, cluster: Cluster, **options: object) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "acks": "all",
                "log_level": 0,
                "message.timeout.ms": 90_000,
                **options,
            }
        )
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def produce(self, partition: int = 0) -> None:
        value = b"%d" % next(self._numbers)
        self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)

    def flush(self, timeout_s: float) -> int:
        """Wait at most this long; return how many records are not acknowledged yet."""
        return self._producer.flush(timeout_s)

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            at = message.partition(), message.offset()
            assert at not in self.acknowledged, f"offset {at} was acknowledged twice"
            self.acknowledged[at] = message.value()

    def _run(self) -> None:
        while not self._stopped.is_set():
            for partition in range(PARTITIONS):
                self.produce(partition)
            self._producer.poll(0.005)

    def __enter__(self) -> Records:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        assert self.flush(90) == 0


def create_topic(cluster: Cluster, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    named = {name.replace("_", "."): value for name, value in configs.items()}
    topic = NewTopic(TOPIC, PARTITIONS, 3, config=named)
    admin.create_topics([topic])[TOPIC].result(30)


def in_sync(cluster: Cluster) -> dict[int, tuple[int, frozenset[int]]]:
    """Return leader and ISR of each partition."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    partitions = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return {n: (result.leader, frozenset(result.isrs)) for n, result in partitions.items()}


def all_in_sync(cluster: Cluster) -> bool:
    return all(isr == {1, 2, 3} for _, isr in in_sync(cluster).values())


def consume(cluster: Cluster) -> dict[tuple[int, int], bytes]:
    """Return all records by partition and offset; check that offsets increase."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, n, 0) for n in range(PARTITIONS)])
    values: dict[tuple[int, int], bytes] = {}
    next_offsets, ended = dict.fromkeys(range(PARTITIONS), 0), set[int]()
    deadline = time.monotonic() + 60
    try:
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                ended.add(message.partition())
                continue
            partition, offset = message.partition(), message.offset()
            assert offset >= next_offsets[partition]
            next_offsets[partition] = offset + 1
            values[partition, offset] = message.value()
        return values
    finally:
        consumer.close()


@pytest.mark.long
def test_kills_of_leaders_followers_and_the_controller_lose_nothing(tmp_path: Path) -> None:
    with Cluster(brokers=3, data_dir=tmp_path, properties=PROPERTIES) as cluster:
        create_topic(cluster, min_insync_replicas="2")
        with Records(cluster, **{"enable.idempotence": True}) as records:
            for choose in (leader_of_0, follower_of_0, controller, leader_of_0):
                wait_until(lambda: all_in_sync(cluster), timeout_s=60)
                kill_and_start(cluster, choose(cluster), records)
        wait_until(lambda: all_in_sync(cluster), timeout_s=60)
        consumed = consume(cluster)
    assert records.acknowledged.items() <= consumed.items()
    assert len(consumed) == len(set(consumed.values()))  # idempotence: no duplicates
    judgements = judged(tmp_path)
    assert judgements["D6"].row.verdict is Verdict.PASS
    assert judgements["D6"].row.judged > 100
    assert not failed(judgements)


def kill_and_start(cluster: Cluster, victim: int, records: Records) -> None:
    """Kill a broker; restart it after the others have acknowledged 100 records without it."""
    cluster.kill_node(victim)
    wait_until(lambda: victim not in in_sync(cluster)[0][1], timeout_s=60)
    enough = len(records.acknowledged) + 100
    wait_until(lambda: len(records.acknowledged) > enough, timeout_s=60)
    cluster.start_node(victim)


def leader_of_0(cluster: Cluster) -> int:
    return in_sync(cluster)[0][0]


def follower_of_0(cluster: Cluster) -> int:
    leader, isr = in_sync(cluster)[0]
    return max(isr - {leader})


def controller(cluster: Cluster) -> int:
    return cluster.wait_for_controller()


@contextmanager
def frozen(cluster: Cluster, brokers: frozenset[int]) -> Iterator[None]:
    """Pause these brokers during the block, which must be shorter than their session timeout."""
    pids = [cluster.brokers[broker].pid for broker in brokers]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.long
@pytest.mark.parametrize(
    ("bug", "lost"),
    [(None, False), ("acknowledge_before_replication", True)],
)
def test_judge_finds_records_acknowledged_before_replication(
    tmp_path: Path, bug: str | None, lost: bool
) -> None:
    """The followers are paused while the leader gets records. Then the leader is killed."""
    command = (*MUTANT_NODE, bug) if bug is not None else ()
    with Cluster(
        brokers=3, data_dir=tmp_path, properties=PROPERTIES, node_command=command
    ) as cluster:
        create_topic(cluster)
        wait_until(lambda: all_in_sync(cluster), timeout_s=30)
        records = Records(cluster, **{"message.timeout.ms": 2_000, "linger.ms": 0})
        records.produce()
        assert records.flush(10) == 0
        leader, isr = in_sync(cluster)[0]
        with frozen(cluster, isr - {leader}):
            for _ in range(10):
                records.produce()
                records.flush(0.1)
            time.sleep(0.2)  # A node writes its events within 50 ms.
            cluster.kill_node(leader)
        wait_until(lambda: in_sync(cluster)[0][0] in isr - {leader}, timeout_s=60)
        assert records.acknowledged
    judgement = judged(tmp_path)["D6"]
    assert judgement.row.verdict is (Verdict.FAIL if lost else Verdict.PASS), judgement.row.why
