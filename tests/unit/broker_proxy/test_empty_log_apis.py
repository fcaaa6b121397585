"""DescribeLogDirs on empty logs, and those cases of DeleteRecords that no recording covers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from bridgehead.kafka_wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from broker_proxy.apis.admin.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.admin.log_dirs import LogDirs, log_dirs_of
from broker_proxy.apis.records.delete_records import DeleteRecords
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from tests.unit.broker_proxy.client_requests import authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker


class Broker(CoordinatingBroker):
    """Broker 1 with both APIs. It reads configs from the image instead of ZooKeeper."""

    def __init__(self, *, allowed: bool = True, **properties: str) -> None:
        super().__init__()
        named = {name.replace("_", "."): value for name, value in properties.items()}
        static = BrokerConfig.from_properties(
            {"broker.id": "1", "zookeeper.connect": "h:1", **named}
        )
        effective = EffectiveBrokerConfig.of(static)
        may = authorize_every_client(allowed)
        self.describe_log_dirs = DescribeLogDirs(
            LogDirs(("/a", "/b"), self.cache, 1), self.cache, may
        )
        self.delete_records = DeleteRecords(1, self.cache, lambda: effective, self, may)

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        return self.image.config(entity_type, entity_name)


def deletion(name: str, *offsets: tuple[int, int]) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(p, offset) for p, offset in offsets]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name, partitions)], timeout_ms=0)


async def codes(broker: Broker, request: DeleteRecordsRequest) -> list[int]:
    response = await broker.call(broker.delete_records, 2, request)
    return [p["errorCode"] for topic in response["topics"] for p in topic["partitions"]]


async def test_delete_records_without_the_delete_right_hides_whether_the_topic_exists() -> None:
    broker = Broker(allowed=False)
    broker.create("t", (1,))
    for name in ("t", "missing"):
        assert await codes(broker, deletion(name, (0, 0))) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_delete_records_rejects_internal_topics() -> None:
    broker = Broker()
    broker.create("__consumer_offsets", (1,), (2,))
    assert await codes(broker, deletion("__consumer_offsets", (0, 0), (1, 0), (9, 0))) == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_delete_records_uses_the_brokers_log_cleanup_policy_as_default() -> None:
    broker = Broker(log_cleanup_policy="compact")
    broker.create("silent", (1,))
    broker.create("both", (1,), configs={"cleanup.policy": "compact,delete"})
    assert await codes(broker, deletion("silent", (0, 0))) == [ErrorCode.POLICY_VIOLATION]
    assert await codes(broker, deletion("both", (0, 0))) == [ErrorCode.NONE]


async def test_delete_records_uses_the_last_entry_of_a_repeated_partition() -> None:
    broker = Broker()
    broker.create("t", (1,))
    assert await codes(broker, deletion("t", (0, 0), (0, 7))) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert (await broker.call(broker.delete_records, 2, deletion("t")))["topics"] == []


@pytest.mark.parametrize("version", range(5))
async def test_describe_log_dirs_returns_this_brokers_replicas(version: int) -> None:
    broker = Broker()
    broker.create("t", (1,), (2,), (2, 1))
    broker.create("elsewhere", (3,))
    outcomes = await broker.call(
        broker.describe_log_dirs, version, DescribeLogDirsRequest(topics=None)
    )
    first, second = outcomes["results"]
    assert (first["logDir"], second["logDir"], second["topics"]) == ("/a", "/b", [])
    (topic,) = first["topics"]
    assert topic["name"] == "t"
    assert [p["partitionIndex"] for p in topic["partitions"]] == [0, 2]
    assert {
        (p["partitionSize"], p["offsetLag"], p["isFutureKey"]) for p in topic["partitions"]
    } == {(0, 0, False)}
    assert first.get("totalBytes", -1) == first.get("usableBytes", -1) == -1


async def test_describe_log_dirs_returns_each_requested_replica_once() -> None:
    broker = Broker()
    broker.create("t", (1,), (2,), (2, 1))
    topics = [
        DescribableLogDirTopic("t", [2, 2, 1, 9]),
        DescribableLogDirTopic("missing", [0]),
        DescribableLogDirTopic("t", [2]),
    ]
    outcomes = await broker.call(broker.describe_log_dirs, 4, DescribeLogDirsRequest(topics=topics))
    (topic,) = outcomes["results"][0]["topics"]
    assert [p["partitionIndex"] for p in topic["partitions"]] == [2]
    nothing = await broker.call(broker.describe_log_dirs, 4, DescribeLogDirsRequest(topics=[]))
    assert [result["topics"] for result in nothing["results"]] == [[], []]


async def test_describe_log_dirs_needs_describe_on_the_cluster() -> None:
    request = DescribeLogDirsRequest(topics=None)
    broker = Broker(allowed=False)
    outcomes = await broker.call(broker.describe_log_dirs, 3, request)
    assert (outcomes["errorCode"], outcomes["results"]) == (31, [])
    assert (await broker.call(broker.describe_log_dirs, 2, request))["results"] == []


def test_log_dirs_overrides_log_dir() -> None:
    assert log_dirs_of("/a, /b", "/c") == ("/a", "/b")
    assert log_dirs_of(None, "/c") == ("/c",)
