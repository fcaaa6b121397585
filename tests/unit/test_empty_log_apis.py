"""APIs that speak of records and groups, where every partition is an empty log: as Kafka answers.

DeleteRecords is replayed from the recordings: broker 1 answers from a metadata cache that was fed
with the topics of each case.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_request, encode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from bridgehead.kafka_wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from bridgehead.kafka_wire.messages.list_groups import ListGroupsRequest
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.delete_records import DeleteRecords
from broker_proxy.apis.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.list_groups import ListGroups
from broker_proxy.log_dirs import LogDirs, log_dirs_of
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.elections import elect_new
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import PartitionRecord, TopicRecord
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate
from tests.unit.authorizing import saying_to_everybody

RECORDINGS: Final = Path(__file__).parent.parent / "recordings"


class Broker:
    """Broker 1 with its cache, and the configs that it would read from ZooKeeper."""

    def __init__(self, *, allowed: bool = True, **properties: str) -> None:
        brokers = Map({i: BrokerRegistration(i, i, ()) for i in (1, 2, 3)})
        self._image = MetadataImage(zxid=1, controller_epoch=1, brokers=brokers)
        self._cache = MetadataCache(lambda: None)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        static = BrokerConfig.from_properties(
            {"broker.id": "1", "zookeeper.connect": "h:1", **named}
        )
        effective = EffectiveBrokerConfig.of(static)
        may = saying_to_everybody(allowed)
        self.apis: dict[int, Any] = {
            16: ListGroups(),
            35: DescribeLogDirs(LogDirs(("/a", "/b"), self._cache, 1), self._cache, may),
            21: DeleteRecords(1, self._cache, lambda: effective, self, may),
        }

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return self._image.config(entity_type, entity_name)

    def create(self, name: str, *assignment: tuple[int, ...], **configs: str) -> None:
        stored = {key.replace("_", "."): value for key, value in configs.items()}
        image = self._image.replay([TopicRecord(name, name.encode()[:16], assignment, stored)])
        states = [elect_new(replicas, image.brokers, 1) for replicas in assignment]
        image = image.replay([PartitionRecord(name, p, s) for p, s in enumerate(states) if s])
        self._image = replace(image, zxid=image.zxid + 1)
        parts = list(full_parts(self._image, 1))
        for count, part in enumerate(parts):
            body, last = encode_request(6, 8, part), count == len(parts) - 1
            self._cache.apply(MetadataUpdate(1, 1, self._image.zxid, body, count == 0, last))

    async def ask(self, key: int, version: int, message: Any) -> Any:
        """Return the answer in JSON's form."""
        connection = ClientConnectionInfo(
            "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
        )
        header = RequestHeader(key, version, 1, None)
        request = ClientRequest("r", header, b"", b"", connection, 0)
        answer = await self.apis[key].answer(request, message)
        return decode_body(key, "response", version, encode_response(key, version, answer))


def by_index(value: Any) -> Any:
    """Lists of topics and partitions in one order: Kafka promises none."""
    if isinstance(value, dict):
        return {key: by_index(v) for key, v in value.items()}
    if isinstance(value, list):
        return sorted(map(by_index, value), key=json.dumps)
    return value


def recorded_cases() -> list[Any]:
    found = []
    for name in ("direct-open", "forwarded-open"):
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
            for case in map(json.loads, lines):
                if case["case"].startswith("delete_records-"):
                    found.append(pytest.param(case["steps"], id=f"{name}-{case['case']}"))
    return found


@pytest.mark.parametrize("steps", recorded_cases())
async def test_every_recorded_deletion_of_records_is_answered_again(steps: list[Any]) -> None:
    """By the broker that the recording asked, byte for byte but for the order."""
    broker, compared = Broker(), 0
    for step in steps:
        if step["api"] == "CREATE_TOPICS":
            for topic in step["body"]["topics"]:
                replicas = [tuple(a["brokerIds"]) for a in topic["assignments"]]
                configs = {c["name"].replace(".", "_"): c["value"] for c in topic["configs"]}
                broker.create(topic["name"], *replicas, **configs)
            continue
        assert step["to"] == "broker:1"
        data = bytes.fromhex(step["request_hex"])
        header, at = decode_request_header(data)
        message = decode_request(21, header.api_version, data, at)
        ours = await broker.ask(21, header.api_version, message)
        assert by_index(ours) == by_index(step["response"]), step["body"]
        compared += 1
    assert compared == 9


def deletion(name: str, *offsets: tuple[int, int]) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(p, offset) for p, offset in offsets]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name, partitions)], timeout_ms=0)


async def codes(broker: Broker, request: DeleteRecordsRequest) -> list[int]:
    answer = await broker.ask(21, 2, request)
    return [p["errorCode"] for topic in answer["topics"] for p in topic["partitions"]]


async def test_without_the_right_a_topic_that_exists_looks_like_one_that_does_not() -> None:
    """29 for both."""
    broker = Broker(allowed=False)
    broker.create("t", (1,))
    for name in ("t", "missing"):
        assert await codes(broker, deletion(name, (0, 0))) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_records_of_kafkas_own_topics_stay() -> None:
    """17, but only where there is such a partition."""
    broker = Broker()
    broker.create("__consumer_offsets", (1,), (2,))
    assert await codes(broker, deletion("__consumer_offsets", (0, 0), (1, 0), (9, 0))) == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_the_brokers_own_policy_counts_where_the_topic_says_nothing() -> None:
    """log.cleanup.policy; what the topic says wins."""
    broker = Broker(log_cleanup_policy="compact")
    broker.create("silent", (1,))
    broker.create("both", (1,), cleanup_policy="compact,delete")
    assert await codes(broker, deletion("silent", (0, 0))) == [ErrorCode.POLICY_VIOLATION]
    assert await codes(broker, deletion("both", (0, 0))) == [ErrorCode.NONE]


async def test_a_partition_asked_for_twice_is_answered_once() -> None:
    """As its last entry asks; a topic without partitions is left out."""
    broker = Broker()
    broker.create("t", (1,))
    assert await codes(broker, deletion("t", (0, 0), (0, 7))) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert (await broker.ask(21, 2, deletion("t")))["topics"] == []


@pytest.mark.parametrize("version", range(6))
async def test_there_are_no_groups(version: int) -> None:
    """Whatever is filtered for."""
    request = ListGroupsRequest(states_filter=["Stable", "nonsense"], types_filter=["nonsense"])
    answer = await Broker().ask(16, version, request)
    assert (answer["errorCode"], answer["groups"]) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", range(5))
async def test_a_broker_tells_of_its_own_replicas(version: int) -> None:
    """Led or followed; those of others, unknown topics and unknown partitions are left out."""
    broker = Broker()
    broker.create("t", (1,), (2,), (2, 1))
    broker.create("elsewhere", (3,))
    told = await broker.ask(35, version, DescribeLogDirsRequest(topics=None))
    first, second = told["results"]
    assert (first["logDir"], second["logDir"], second["topics"]) == ("/a", "/b", [])
    (topic,) = first["topics"]
    assert topic["name"] == "t"
    assert [p["partitionIndex"] for p in topic["partitions"]] == [0, 2]
    assert {
        (p["partitionSize"], p["offsetLag"], p["isFutureKey"]) for p in topic["partitions"]
    } == {(0, 0, False)}
    assert first.get("totalBytes", -1) == first.get("usableBytes", -1) == -1


async def test_a_broker_tells_of_the_replicas_asked_for() -> None:
    """A partition that comes twice is told once; an empty list asks for none."""
    broker = Broker()
    broker.create("t", (1,), (2,), (2, 1))
    topics = [
        DescribableLogDirTopic("t", [2, 2, 1, 9]),
        DescribableLogDirTopic("missing", [0]),
        DescribableLogDirTopic("t", [2]),
    ]
    told = await broker.ask(35, 4, DescribeLogDirsRequest(topics=topics))
    (topic,) = told["results"][0]["topics"]
    assert [p["partitionIndex"] for p in topic["partitions"]] == [2]
    nothing = await broker.ask(35, 4, DescribeLogDirsRequest(topics=[]))
    assert [result["topics"] for result in nothing["results"]] == [[], []]


async def test_without_the_right_no_directory_is_told() -> None:
    """31 where the version has room for it."""
    request = DescribeLogDirsRequest(topics=None)
    told = await Broker(allowed=False).ask(35, 3, request)
    assert (told["errorCode"], told["results"]) == (31, [])
    assert (await Broker(allowed=False).ask(35, 2, request))["results"] == []


def test_log_dirs_win_over_log_dir() -> None:
    """As in Kafka; blanks around the names do not count."""
    assert log_dirs_of("/a, /b", "/c") == ("/a", "/b")
    assert log_dirs_of(None, "/c") == ("/c",)
