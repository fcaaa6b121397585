"""A group survives the kill of its coordinator: members continue, and no commit is lost."""

from __future__ import annotations

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

pytestmark = pytest.mark.long
MUTANT_NODE: Final = module_command("chaos.mutant_node", "--mutants")
TOPIC = GROUP = "moves"
PROPERTIES = {
    "bridgehead.data.plane": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def test_committed_offsets_survive_the_kill_of_each_coordinator(tmp_path: Path) -> None:
    """One member commits increasing offsets. After each kill it commits to the new coordinator."""
    with Cluster(properties=PROPERTIES, data_dir=tmp_path) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result()
        consumer = confluent_kafka.Consumer(
            {**servers, "group.id": GROUP, "enable.auto.commit": False, "session.timeout.ms": 30000}
        )
        consumer.subscribe([TOPIC])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment())

        acknowledged = 0
        for _ in range(2):
            for _ in range(20):
                acknowledged = commit(consumer, acknowledged + 1)
            group = admin.describe_consumer_groups([GROUP])[GROUP].result()
            cluster.kill_node(group.coordinator.id)
            kept = wait_until(lambda: committed(consumer), lambda offset: offset is not None)
            assert kept == acknowledged
            # The member keeps its generation on the new coordinator, and commits there.
            acknowledged = commit(consumer, acknowledged + 1)
            assert committed(consumer) == acknowledged
            moved = admin.describe_consumer_groups([GROUP])[GROUP].result()
            assert moved.coordinator.id != group.coordinator.id
            cluster.start_node(group.coordinator.id)
            wait_until(lambda: in_sync(admin) == 3)
        consumer.close()
    judgements = judged(tmp_path)
    assert judgements["D11"].row.verdict is Verdict.PASS
    assert judgements["D11"].row.judged >= 2
    assert not failed(judgements)


@pytest.mark.parametrize(
    ("bug", "violated"),
    [
        (None, None),
        ("loads_first_commits", "1, which is older"),
        ("loads_offsets_ahead", "4, which was not committed"),
    ],
)
def test_judge_finds_wrong_committed_offsets(
    tmp_path: Path, bug: str | None, violated: str | None
) -> None:
    """Three offsets are committed; the coordinator is killed; the next coordinator loads them."""
    command = (*MUTANT_NODE, bug) if bug is not None else ()
    with Cluster(properties=PROPERTIES, data_dir=tmp_path, node_command=command) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result()
        consumer = confluent_kafka.Consumer({**servers, "group.id": GROUP})
        for offset in (1, 2, 3):
            commit(consumer, offset)
        group = admin.describe_consumer_groups([GROUP])[GROUP].result()
        cluster.kill_node(group.coordinator.id)
        wait_until(lambda: committed(consumer), lambda offset: offset is not None)
        consumer.close()
    judgement = judged(tmp_path)["D11"]
    if violated is None:
        assert judgement.row.verdict is Verdict.PASS, judgement.row.why
    else:
        assert judgement.row.verdict is Verdict.FAIL
        assert violated in judgement.violations[0].sentence


def commit(consumer: confluent_kafka.Consumer, offset: int) -> int:
    """Repeat the commit of an offset until it is acknowledged; return the offset."""
    wanted = confluent_kafka.TopicPartition(TOPIC, 0, offset)

    def acknowledged() -> bool:
        consumer.poll(0)
        try:
            (done,) = consumer.commit(offsets=[wanted], asynchronous=False)
        except confluent_kafka.KafkaException:
            return False
        return done.error is None

    wait_until(acknowledged)
    return offset


def committed(consumer: confluent_kafka.Consumer) -> int | None:
    """Return the committed offset; None while no coordinator answers."""
    try:
        (partition,) = consumer.committed([confluent_kafka.TopicPartition(TOPIC, 0)], timeout=30)
    except confluent_kafka.KafkaException:
        return None
    return None if partition.error else partition.offset


def in_sync(admin: AdminClient) -> int:
    """Return the size of the ISR of the group's partition of `__consumer_offsets`."""
    topics = admin.list_topics(timeout=30).topics
    return len(topics["__consumer_offsets"].partitions[0].isrs)
