"""Client quotas on a real node: byte rates with a released client, and a request percentage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection

METADATA, ALTER_QUOTAS = 3, 49
RATE = 100_000
# With two samples of one second, a client is throttled only after it has used more than its rate
# allows in one second.
PROPERTIES = {"bridgehead.data.plane": "true", "quota.window.num": "2"}
VALUE = bytes(range(256)) * 100  # 25,600 bytes


@pytest.fixture(scope="module")
def cluster(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    with Cluster(zookeeper=new_chroot(), brokers=1, properties=PROPERTIES) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for name in ("written", "read"):
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        yield cluster


def set_quota(cluster: Cluster, client_id: str, key: str, value: float) -> None:
    entity = [{"entityType": "client-id", "entityName": client_id}]
    ops = [{"key": key, "value": value, "remove": False}]
    body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    response = Connection(cluster.bootstrap_server(1)).call(ALTER_QUOTAS, 1, body)
    assert [entry["errorCode"] for entry in response["entries"]] == [0]


def until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline


def throttles_of(
    options: dict[str, object], cluster: Cluster
) -> tuple[dict[str, object], list[float]]:
    """Return the options of a client and the list of its throttle times in seconds."""
    seen: list[float] = []
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "throttle_cb": lambda event: seen.append(event.throttle_time),
        **options,
    }, seen


def test_a_producer_above_its_byte_rate_is_throttled(cluster: Cluster) -> None:
    set_quota(cluster, "writer", "producer_byte_rate", RATE)
    options, throttles = throttles_of({"client.id": "writer", "batch.size": 30_000}, cluster)
    producer = confluent_kafka.Producer(options)

    def produced_and_throttled() -> bool:
        producer.produce("written", VALUE)
        assert producer.flush(30) == 0
        return any(throttles)

    until(produced_and_throttled)
    options, throttles = throttles_of({"client.id": "free"}, cluster)
    free = confluent_kafka.Producer(options)
    for _ in range(20):
        free.produce("written", VALUE)
        assert free.flush(30) == 0
    assert not any(throttles)


def test_a_consumer_above_its_byte_rate_is_throttled_and_gets_every_record(
    cluster: Cluster,
) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "batch.size": 30_000}
    )
    for _ in range(12):
        producer.produce("read", VALUE)
    assert producer.flush(30) == 0
    set_quota(cluster, "reader", "consumer_byte_rate", RATE)
    options, throttles = throttles_of(
        {"client.id": "reader", "group.id": "unused", "enable.auto.commit": False}, cluster
    )
    consumer = confluent_kafka.Consumer(options)
    partition = confluent_kafka.TopicPartition("read", 0, 0)
    _, end = consumer.get_watermark_offsets(partition, 30)

    def read_all() -> list[int]:
        consumer.assign([partition])
        offsets: list[int] = []
        while len(offsets) < end:
            offsets += received(end - len(offsets))
        return offsets

    def received(count: int) -> list[int]:
        messages = consumer.consume(count, timeout=5)
        assert not any(message.error() for message in messages)
        return [message.offset() for message in messages]

    # The broker may learn of the quota only after the response to AlterClientQuotas, so the test
    # reads until the broker throttles.
    until(lambda: read_all() == list(range(end)) and any(throttles), 120)
    consumer.close()


def test_a_client_above_its_request_percentage_is_muted(cluster: Cluster) -> None:
    set_quota(cluster, "busy", "request_percentage", 0.001)
    connection = Connection(cluster.bootstrap_server(1))

    def throttled_ms() -> int:
        body = {
            "topics": None,
            "allowAutoTopicCreation": False,
            "includeClusterAuthorizedOperations": False,
            "includeTopicAuthorizedOperations": False,
        }
        response = connection.call(METADATA, 8, body, client_id="busy")
        throttle_ms = response["throttleTimeMs"]
        assert isinstance(throttle_ms, int)
        return throttle_ms

    until(lambda: throttled_ms() > 0)
    began = time.monotonic()
    first = throttled_ms()
    assert 0 < first <= 1000
    throttled_ms()
    assert time.monotonic() - began >= first / 1000
