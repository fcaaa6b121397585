"""Responses are the same whether a client sends many requests at once or one by one."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import decode_message, encode_message
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst

_TOPICS = ("a.b", "a_b", "c", "d", "e", "f", "g", "h", "i", "_j")
_REQUESTS = 300
_Request = tuple[ApiKey, int, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster. After the tests the judge must find no violation in its evidence."""
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(brokers=3, data_dir=folder) as running:
        yield running
    assert worst(judgement.row for judgement in judge(History(read_run(folder)))) is Verdict.PASS


def _request(source: random.Random) -> _Request:
    names = source.sample(_TOPICS, source.choice((1, 1, 1, 2)))
    match source.choice(("create", "create", "configs", "partitions", "delete", "metadata")):
        case "create":
            topics = [
                CreatableTopic(
                    name=name, num_partitions=source.choice((0, 1)), replication_factor=3
                )
                for name in names
            ]
            only = source.random() < 0.1
            message: Any = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=only)
            return ApiKey.CREATE_TOPICS, 7, message
        case "configs":
            value = source.choice(("1000", "2000", "no number"))
            config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
            resources = [AlterConfigsResource(2, name, [config]) for name in names]
            message = IncrementalAlterConfigsRequest(resources=resources)
            return ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, message
        case "partitions":
            more = [CreatePartitionsTopic(name=name, count=source.choice((1, 2))) for name in names]
            message = CreatePartitionsRequest(topics=more, timeout_ms=30_000)
            return ApiKey.CREATE_PARTITIONS, 3, message
        case "delete":
            states = [DeleteTopicState(name=name) for name in names]
            message = DeleteTopicsRequest(topics=states, timeout_ms=30_000)
            return ApiKey.DELETE_TOPICS, 6, message
    wanted = [MetadataRequestTopic(name=name) for name in names]
    return ApiKey.METADATA, 12, MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def _script(seed: int) -> list[_Request]:
    """Return requests in series of one API: a broker overlaps only requests of the same API.

    The last request deletes all topics.
    """
    source = random.Random(seed)
    script: list[_Request] = []
    while len(script) < _REQUESTS:
        request = _request(source)
        script.append(request)
        for _ in range(source.choice((0, 4, 12))):
            while (more := _request(source))[0] is not request[0]:
                pass
            script.append(more)
    states = [DeleteTopicState(name=name) for name in _TOPICS]
    script.append((ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=states, timeout_ms=30_000)))
    return script


def _comparable(key: ApiKey, response: Any) -> Any:
    """Return what must be equal: no ids, and only some fields of Metadata and DeleteTopics."""
    match key:
        case ApiKey.METADATA:
            return [(e.name, e.error_code, len(e.partitions)) for e in response.topics]
        case ApiKey.CREATE_TOPICS:
            return [replace(topic, topic_id=bytes(16)) for topic in response.topics]
        case ApiKey.DELETE_TOPICS:
            return [(responded.name, responded.error_code) for responded in response.responses]
    return response


def _overlap_max(cluster: Cluster, broker: int) -> int:
    """Return the largest number of requests in progress on one connection, from the evidence."""
    in_progress: Counter[str] = Counter()
    connections: dict[str, str] = {}
    most = 0
    for path in sorted(cluster.evidence_dir.glob(f"node={broker}/*.jsonl")):
        for event in map(json.loads, path.read_text().splitlines()):
            if event["kind"] == "request_received":
                connection = connections[event["request_id"]] = event["connection"]
                in_progress[connection] += 1
                most = max(most, in_progress[connection])
            elif event["kind"] == "responded":
                in_progress[connections[event["request_id"]]] -= 1
    return most


async def _responses(address: str, script: Sequence[_Request], *, at_once: bool) -> list[Any]:
    connection = await AsyncConnection.open(address)
    payloads = [encode_message(*request) for request in script]
    if at_once:
        connection.send(*payloads)
        responses = [await connection.receive() for _ in payloads]
    else:
        responses = [await connection.exchange(payload) for payload in payloads]
    connection.close()
    return [
        _comparable(key, decode_message(key, version, response))
        for (key, version, _), response in zip(script, responses, strict=True)
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_requests_sent_at_once_get_the_responses_of_requests_sent_one_by_one(
    cluster: Cluster, seed: int
) -> None:
    controller = cluster.wait_for_controller()
    forwarding = next(node for node in cluster.brokers if node != controller)
    script = _script(seed)
    one_by_one = await _responses(cluster.bootstrap_server(forwarding), script, at_once=False)
    for broker in (forwarding, controller):
        at_once = await _responses(cluster.bootstrap_server(broker), script, at_once=True)
        for request, expected, got in zip(script, one_by_one, at_once, strict=True):
            assert got == expected, request
        assert _overlap_max(cluster, broker) > 5
