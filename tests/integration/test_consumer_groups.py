"""Consumer groups of released clients: members share a topic, admin clients manage the group."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient

from bridgehead.cluster import Cluster
from tests.integration.processes import wait_until
from tests.integration.record_clients.kafka_python import POLL_MS

PARTITIONS = 4
RECORDS = 20
PROPERTIES = {
    "bridgehead.data.plane": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
}


@pytest.fixture(scope="module")
def servers(new_chroot: Callable[[], str]) -> Iterator[str]:
    with Cluster(zookeeper=new_chroot(), properties=PROPERTIES) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic for one test, with five records in each of four partitions."""
    name = request.node.name.replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return name


def test_confluent_kafka_shares_a_topic_in_a_group_and_manages_it(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})

    def member(name: str) -> confluent_kafka.Consumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": topic,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        return consumer

    def offsets() -> dict[int, int]:
        request = [ConsumerGroupTopicPartitions(topic)]
        (future,) = admin.list_consumer_group_offsets(request).values()
        return {item.partition: item.offset for item in future.result().topic_partitions}

    first = member("first")
    values = {read(first).value() for _ in range(RECORDS)}
    assert values == {str(number).encode() for number in range(RECORDS)}
    committed = first.commit(asynchronous=False)
    assert {offset.offset for offset in committed} == {RECORDS // PARTITIONS}

    second = member("second")

    def shares() -> list[int]:
        return [len(one.assignment()) for one in (first, second) if not one.poll(0.05)]

    wait_until(shares, lambda value: value == [2, 2])
    group = admin.describe_consumer_groups([topic])[topic].result()
    assert (group.state.name, group.partition_assignor) == ("STABLE", "range")
    assert sorted(item.client_id for item in group.members) == ["first", "second"]
    listed = admin.list_consumer_groups().result()
    assert topic in {item.group_id for item in listed.valid}

    index = first.assignment()[0].partition
    first.seek(confluent_kafka.TopicPartition(topic, index, 3))
    assert read(first).offset() == 3
    second.close()
    first.close()

    assert offsets() == dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)
    reset = confluent_kafka.TopicPartition(topic, 0, 1)
    (altered,) = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(topic, [reset])]
    ).values()
    assert altered.result().topic_partitions[0].error is None
    assert offsets()[0] == 1
    again = member("again")
    record = read(again)
    assert (record.partition(), record.offset()) == (0, 1)
    again.close()

    admin.delete_consumer_groups([topic])[topic].result()
    assert topic not in {item.group_id for item in admin.list_consumer_groups().result().valid}


def read(consumer: confluent_kafka.Consumer) -> confluent_kafka.Message:
    message = wait_until(lambda: consumer.poll(0.1))
    assert message.error() is None
    return message


@pytest.mark.long
def test_kafka_python_shares_a_topic_in_a_group_and_deletes_it(servers: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)

    def member(name: str) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=topic,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    first = member("first")
    seen: list[Any] = []

    def all_read() -> int:
        for records in first.poll(POLL_MS).values():
            seen.extend(record.value for record in records)
        return len(seen)

    wait_until(all_read, lambda value: value == RECORDS)
    assert set(seen) == {str(number).encode() for number in range(RECORDS)}
    first.commit()
    second = member("second")

    def shares() -> list[int]:
        for consumer in (first, second):
            consumer.poll(POLL_MS)
        return [len(consumer.assignment()) for consumer in (first, second)]

    wait_until(shares, lambda value: value == [2, 2])
    partition = sorted(first.assignment())[0]
    first.seek(partition, 3)
    assert wait_until(lambda: first.poll(POLL_MS))[partition][0].offset == 3
    first.close(autocommit=False)
    second.close(autocommit=False)

    offsets = admin.list_group_offsets([topic])[topic]
    assert {key.partition: meta.offset for key, meta in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), RECORDS // PARTITIONS
    )
    admin.delete_groups([topic])
    assert topic not in {group["group_id"] for group in admin.list_groups()}
    admin.close()


async def test_aiokafka_shares_a_topic_in_a_group_and_lists_it(servers: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()

    async def member(name: str) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=topic,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        return consumer

    first = await member("first")
    async with asyncio.timeout(60):
        seen = {(await first.getone()).value for _ in range(RECORDS)}
    assert seen == {str(number).encode() for number in range(RECORDS)}
    await first.commit()
    second = await member("second")
    await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
    assert (topic, "consumer") in await admin.list_consumer_groups()
    partition = sorted(first.assignment())[0]
    first.seek(partition, 3)
    async with asyncio.timeout(60):
        assert (await first.getone(partition)).offset == 3
    await second.stop()
    await first.stop()

    offsets = await admin.list_consumer_group_offsets(topic)
    assert {key.partition: offset.offset for key, offset in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), RECORDS // PARTITIONS
    )
    await admin.close()


def test_the_groups_command_describes_groups_and_changes_offsets(servers: str, topic: str) -> None:
    """The command is `bridgehead groups`. It works like kafka-consumer-groups.sh."""
    first_partition = [confluent_kafka.TopicPartition(topic, 0, 4)]
    owner = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": topic})
    owner.commit(offsets=first_partition, asynchronous=False)
    owner.close()

    def groups(*arguments: str) -> list[list[str]]:
        command = [sys.executable, "-m", "bridgehead", "groups", "--bootstrap-server", servers]
        done = subprocess.run(
            [*command, "--group", topic, *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines() if line.startswith(topic)]

    assert groups("--describe") == [[topic, topic, "0", "4", "5", "1", "-", "-", "-"]]
    dry_run = groups("--reset-offsets", "--topic", topic, "--to-earliest")
    assert dry_run == [[topic, topic, str(number), "0"] for number in range(PARTITIONS)]
    assert groups("--describe")[0][3] == "4"
    groups("--reset-offsets", "--topic", f"{topic}:0", "--shift-by", "-1", "--execute")
    groups("--reset-offsets", "--topic", f"{topic}:1", "--to-offset", "99", "--execute")
    assert [row[2:5] for row in groups("--describe")] == [["0", "3", "5"], ["1", "5", "5"]]
    groups("--delete-offsets", "--topic", f"{topic}:0")
    assert [row[2] for row in groups("--describe")] == ["1"]


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_true():
            await asyncio.sleep(0.05)
