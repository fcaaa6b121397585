"""Released Kafka clients produce and consume on brokers with a data plane."""

from __future__ import annotations

import itertools
import urllib.request
from collections.abc import Iterator

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection

PROPERTIES = {"bridgehead.data.plane": "true"}
DESCRIBE_PRODUCERS = 61
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_names = (f"records-{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, properties=PROPERTIES) as cluster:
        yield cluster


def create_topic(cluster: Cluster, partitions: int = 1, **configs: str) -> str:
    """Create a topic with one replica per partition; return its name."""
    name = next(_names)
    named = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions, 1, config=named)])[name].result(30)
    return name


def produce(cluster: Cluster, topic: str, values: list[bytes], **options: object) -> list[int]:
    """Produce to partition 0 with confluent-kafka; return the offsets."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "message.timeout.ms": 30_000, **options}
    )
    offsets: list[int] = []

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(30) == 0
    return offsets


def consume(cluster: Cluster, topic: str, count: int, offset: int = 0) -> list[bytes]:
    """Consume from partition 0 with confluent-kafka, without a group."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
    try:
        values: list[bytes] = []
        while len(values) < count:
            messages = consumer.consume(count - len(values), timeout=30)
            assert messages, f"{len(values)} of {count} messages"
            for message in messages:
                assert message.error() is None, message.error()
                values.append(message.value())
        return values
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_consumers_get_the_records_of_confluent_kafka_with_every_codec(
    cluster: Cluster, codec: str
) -> None:
    topic = create_topic(cluster)
    values = [b"value-%d" % number * 20 for number in range(500)]
    offsets = produce(cluster, topic, values, **{"compression.type": codec})
    assert sorted(offsets) == list(range(500))
    assert consume(cluster, topic, 500) == values
    assert consume(cluster, topic, 100, offset=400) == values[400:]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_consumers_get_the_records_of_kafka_python_with_every_value_of_acks(
    cluster: Cluster, acks: int | str
) -> None:
    topic = create_topic(cluster)
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, acks=acks, enable_idempotence=False
    )
    for number in range(20):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, consumer_timeout_ms=30_000
    )
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    values = [message.value for message in itertools.islice(consumer, 20)]
    consumer.close()
    assert values == [b"%d" % number for number in range(20)]


def test_records_of_an_idempotent_producer_are_stored_once(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    values = [b"%d" % number for number in range(200)]
    offsets = produce(cluster, topic, values, **{"enable.idempotence": True, "linger.ms": 0})
    assert sorted(offsets) == list(range(200))
    assert consume(cluster, topic, 200) == values
    body = {"topics": [{"name": topic, "partitionIndexes": [0]}]}
    results = [
        Connection(cluster.bootstrap_server(broker)).call(DESCRIBE_PRODUCERS, 0, body)
        for broker in (1, 2)
    ]
    responses = [result["topics"][0]["partitions"][0] for result in results]
    (leader,) = (response for response in responses if response["errorCode"] == 0)
    ((producer),) = leader["activeProducers"]
    assert producer["lastSequence"] == 199
    assert (producer["producerEpoch"], producer["coordinatorEpoch"]) == (0, -1)


def test_offsets_are_listed_by_position_and_by_time(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    times = [1_700_000_000_000 + 1000 * number for number in range(10)]
    for time in times:
        producer.produce(topic, b"x", partition=0, timestamp=time)
        assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused"}
    )
    partition = confluent_kafka.TopicPartition(topic, 0)
    assert consumer.get_watermark_offsets(partition, timeout=30) == (0, 10)
    for number, time in enumerate(times):
        wanted = confluent_kafka.TopicPartition(topic, 0, time - 500)
        (at_time,) = consumer.offsets_for_times([wanted], timeout=30)
        assert (at_time.error, at_time.offset) == (None, number)
    consumer.close()


def test_delete_records_moves_the_low_watermark_and_offsets_continue(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    produce(cluster, topic, [b"%d" % number for number in range(20)])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for before, low in ((5, 5), (3, 5), (-1, 20)):
        wanted = confluent_kafka.TopicPartition(topic, 0, before)
        (result,) = admin.delete_records([wanted]).values()
        assert result.result(30).low_watermark == low
    beyond = confluent_kafka.TopicPartition(topic, 0, 21)
    (rejected,) = admin.delete_records([beyond]).values()
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        rejected.result(30)
    assert raised.value.args[0].code() == confluent_kafka.KafkaError.OFFSET_OUT_OF_RANGE
    assert produce(cluster, topic, [b"new"]) == [20]
    assert consume(cluster, topic, 1, offset=20) == [b"new"]


@pytest.mark.long
def test_a_killed_leader_restarts_with_all_records(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    values = [b"%d" % number for number in range(100)]
    produce(cluster, topic, values)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    leader = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader
    cluster.kill_node(leader)
    cluster.start_node(leader)
    assert consume(cluster, topic, 100) == values
    assert produce(cluster, topic, [b"next"]) == [100]


def metric(cluster: Cluster, name: str, *labels: str) -> float:
    """Return the sum, over all brokers, of a metric's lines that have these labels."""
    total = 0.0
    for broker in cluster.brokers.values():
        with urllib.request.urlopen(broker.metrics_url) as response:
            lines = response.read().decode().splitlines()
        for line in lines:
            matches = line.startswith((f"{name} ", f"{name}{{"))
            if matches and all(label in line for label in labels):
                total += float(line.rsplit(" ", 1)[1])
    return total


def test_produced_and_fetched_records_are_counted_under_kafkas_names(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    counters = ("messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests")
    prefix = "kafka_server_brokertopicmetrics_"
    before = {counter: metric(cluster, f"{prefix}{counter}persec") for counter in counters}
    produce(cluster, topic, [bytes(1000)] * 20)
    consume(cluster, topic, 20)
    grown = {
        counter: metric(cluster, f"{prefix}{counter}persec") - before[counter]
        for counter in counters
    }
    assert grown["messagesin"] == 20
    assert 20_000 < grown["bytesin"] == metric(cluster, "kafka_log_log_size", f'topic="{topic}"')
    assert grown["bytesout"] >= grown["bytesin"]
    assert grown["totalproducerequests"] >= 1
    assert grown["totalfetchrequests"] >= 1
    assert metric(cluster, "kafka_log_log_logendoffset", f'topic="{topic}"') == 20
