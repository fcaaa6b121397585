"""What the in-memory fakes of Kafka get wrong, asked of a real cluster of ours.

Each test is one point of a list of what the strongest of them, kfake, does otherwise than Kafka.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from chaos.fidelity import Connection

LIST_OFFSETS, METADATA, FIND_COORDINATOR, CREATE_TOPICS, DESCRIBE_CONFIGS = 2, 3, 10, 19, 32
ALTER_CONFIGS, CREATE_PARTITIONS, ALTER_QUOTAS, DESCRIBE_QUOTAS = 33, 37, 49, 48
names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers in three racks; broker 1 is the controller."""
    racks = {broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)}
    with Cluster(brokers=3, controller=1, node_properties=racks) as running:
        yield running


def ask(cluster: Cluster, key: int, version: int, body: dict[str, Any], broker: int = 2) -> Any:
    """Ask a broker that is not the controller, unless said."""
    connection = Connection(cluster.bootstrap_server(broker))
    head = encode_request_header(RequestHeader(key, version, 7, "test"))
    answer = connection.ask(head + encode_body(key, "request", version, body))
    connection.close()
    assert isinstance(answer, bytes), answer
    _, at = decode_response_header(key, version, answer)
    return decode_body(key, "response", version, answer[at:])


def create(
    cluster: Cluster,
    *topics: str,
    replicas: list[list[int]] | None = None,
    configs: dict[str, str] | None = None,
    timeout_ms: int = 10_000,
) -> list[tuple[str, str | None]]:
    """Create topics alike; return the name of the code and the message of each."""
    given = list(enumerate(replicas or []))
    body = {
        "topics": [
            {
                "name": name,
                "numPartitions": -1 if given else 1,
                "replicationFactor": -1 if given else 3,
                "assignments": [{"partitionIndex": p, "brokerIds": ids} for p, ids in given],
                "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()],
            }
            for name in topics
        ],
        "timeoutMs": timeout_ms,
        "validateOnly": False,
    }
    answer = ask(cluster, CREATE_TOPICS, 7, body)
    return [(ErrorCode(t["errorCode"]).name, t["errorMessage"]) for t in answer["topics"]]


def described(cluster: Cluster, *topics: str) -> Any:
    body = {
        "topics": [{"topicId": "A" * 22, "name": name} for name in topics],
        "allowAutoTopicCreation": False,
        "includeTopicAuthorizedOperations": False,
    }
    return ask(cluster, METADATA, 12, body)


@pytest.mark.parametrize("name", ["with space", "x" * 300, "", ".", "umläut"])
def test_an_illegal_topic_name_is_refused_with_a_reason(cluster: Cluster, name: str) -> None:
    ((code, text),) = create(cluster, name)
    assert code == "INVALID_TOPIC_EXCEPTION"
    assert text


def test_an_unknown_config_or_a_bad_value_is_refused_with_a_reason(cluster: Cluster) -> None:
    for configs in ({"no.such.config": "1"}, {"retention.ms": "soon"}, {"cleanup.policy": "burn"}):
        ((code, text),) = create(cluster, next(names), configs=configs)
        assert code == "INVALID_CONFIG"
        assert next(iter(configs)) in str(text)


def test_errors_of_creation_and_growth_say_what_is_wrong(cluster: Cluster) -> None:
    name = next(names)
    assert create(cluster, name) == [("NONE", None)]
    assert create(cluster, name) == [("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")]
    grow = {"topics": [{"name": name, "count": 1, "assignments": None}]}
    body = {**grow, "timeoutMs": 1000, "validateOnly": False}
    (result,) = ask(cluster, CREATE_PARTITIONS, 3, body)["results"]
    assert result["errorMessage"] == "Topic already has 1 partitions."


def test_a_topic_named_twice_fails_alone(cluster: Cluster) -> None:
    """The others of the request are created."""
    twice, once = next(names), next(names)
    answers = create(cluster, twice, once, twice)
    assert sorted(code for code, _ in answers) == ["INVALID_REQUEST", "INVALID_REQUEST", "NONE"]
    assert [t["errorCode"] for t in described(cluster, once, twice)["topics"]] == [0, 3]


def test_a_given_placement_is_checked_and_kept(cluster: Cluster) -> None:
    """Brokers that do not exist, duplicates and gaps are refused; the rest stays as asked."""
    for bad in ([[9]], [[1, 1]], [[1, 2], [3]]):
        ((code, text),) = create(cluster, next(names), replicas=bad)
        assert code == "INVALID_REPLICA_ASSIGNMENT"
        assert text
    name, wanted = next(names), [[3, 1], [1, 2], [2, 3]]
    assert create(cluster, name, replicas=wanted) == [("NONE", None)]
    (topic,) = described(cluster, name)["topics"]
    partitions = sorted(topic["partitions"], key=lambda p: p["partitionIndex"])
    assert [p["replicaNodes"] for p in partitions] == wanted
    assert [p["leaderId"] for p in partitions] == [3, 1, 2]


def test_each_broker_has_its_own_rack_and_internal_topics_say_so(cluster: Cluster) -> None:
    ask(cluster, FIND_COORDINATOR, 1, {"key": "group", "keyType": 0})
    name = next(names)
    create(cluster, name)
    answer = described(cluster, name, "__consumer_offsets")
    racks = {broker["nodeId"]: broker["rack"] for broker in answer["brokers"]}
    assert racks == {1: "rack-1", 2: "rack-2", 3: "rack-3"}
    assert [topic["isInternal"] for topic in answer["topics"]] == [False, True]


def test_a_request_that_may_not_wait_is_told_that_its_time_is_over(cluster: Cluster) -> None:
    """The topic comes to be all the same."""
    name = next(names)
    assert create(cluster, name, timeout_ms=0) == [("REQUEST_TIMED_OUT", None)]
    assert create(cluster, name)[0][0] == "TOPIC_ALREADY_EXISTS"


def test_quotas_have_known_keys_and_values_that_fit(cluster: Cluster) -> None:
    """What is refused is not stored; that they are enforced, test_mutation_quota.py shows."""

    def alter(key: str, value: float) -> str:
        entity = [{"entityType": "user", "entityName": "quota-user"}]
        ops = [{"key": key, "value": value, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        (entry,) = ask(cluster, ALTER_QUOTAS, 1, body)["entries"]
        return ErrorCode(entry["errorCode"]).name

    assert alter("no_such_rate", 1.0) == "INVALID_REQUEST"
    assert alter("producer_byte_rate", 0.5) == "INVALID_REQUEST"
    assert alter("consumer_byte_rate", 10.0) == "NONE"
    components = [{"entityType": "user", "matchType": 0, "match": "quota-user"}]
    answer = ask(cluster, DESCRIBE_QUOTAS, 1, {"components": components, "strict": True})
    (entry,) = answer["entries"]
    assert entry["values"] == [{"key": "consumer_byte_rate", "value": 10.0}]


def test_a_host_name_may_stand_for_an_ip_if_it_has_an_address(cluster: Cluster) -> None:
    """The controller looks it up, as Kafka's does; it is stored as it was written."""

    def limit(name: str) -> int:
        entity = [{"entityType": "ip", "entityName": name}]
        ops = [{"key": "connection_creation_rate", "value": 5.0, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        (entry,) = ask(cluster, ALTER_QUOTAS, 1, body)["entries"]
        return int(entry["errorCode"])

    assert [limit(name) for name in ("LocalHost", "no-such-host.invalid")] == [0, 42]
    components = [{"entityType": "ip", "matchType": 0, "match": "LocalHost"}]
    answer = ask(cluster, DESCRIBE_QUOTAS, 1, {"components": components, "strict": True})
    assert len(answer["entries"]) == 1


def test_version_0_finds_a_log_from_when_it_was_made(cluster: Cluster) -> None:
    """The oldest way to ask for offsets by time."""
    name = next(names)
    before_ms = int(time.time() * 1000) - 1
    create(cluster, name, replicas=[[2]])

    def offsets(timestamp: int) -> list[int]:
        partition = {"partitionIndex": 0, "timestamp": timestamp, "maxNumOffsets": 1}
        topics = [{"name": name, "partitions": [partition]}]
        answer = ask(cluster, LIST_OFFSETS, 0, {"replicaId": -1, "topics": topics})
        (told,) = answer["topics"][0]["partitions"]
        assert told["errorCode"] == 0
        return list(told["oldStyleOffsets"])

    assert offsets(before_ms) == []
    assert offsets(int(time.time() * 1000) + 1) == [0]


@pytest.mark.parametrize(
    ("resource_type", "name", "at_least"), [(2, "", 35), (4, "1", 250)], ids=["topic", "broker"]
)
def test_all_configs_are_described(
    cluster: Cluster, resource_type: int, name: str, at_least: int
) -> None:
    """Not the handful that clients usually look at."""
    name = name or next(names)
    if resource_type == 2:
        create(cluster, name)
    resource = {"resourceType": resource_type, "resourceName": name, "configurationKeys": None}
    body = {"resources": [resource], "includeSynonyms": True, "includeDocumentation": True}
    (result,) = ask(cluster, DESCRIBE_CONFIGS, 4, body, broker=1)["results"]
    assert len(result["configs"]) >= at_least
    assert all(config["documentation"] for config in result["configs"][:20])


def test_writes_work_at_any_broker_because_it_forwards_them(cluster: Cluster) -> None:
    """Through every broker the same controller writes, and everybody is told of it."""
    for broker in (1, 2, 3):
        name = next(names)
        create(cluster, name)
        configs = [{"name": "retention.ms", "value": "1000"}]
        resource = {"resourceType": 2, "resourceName": name, "configs": configs}
        body = {"resources": [resource], "validateOnly": False}
        (result,) = ask(cluster, ALTER_CONFIGS, 2, body, broker=broker)["responses"]
        assert result["errorCode"] == 0


def test_the_controller_moves_and_metadata_says_where_it_is(cluster: Cluster) -> None:
    """Where a fake's controller is the same for ever."""
    assert described(cluster)["controllerId"] == 1
    cluster.move_controller(3)
    assert described(cluster)["controllerId"] == 3
    assert create(cluster, next(names)) == [("NONE", None)]
    cluster.move_controller(1)


def wait_until(holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_replicas_on_a_dead_broker_leave_the_isr(cluster: Cluster) -> None:
    """And its partitions are led by others. The last test of this file: broker 3 is dead then."""
    name = next(names)
    create(cluster, name, replicas=[[3, 1, 2]])
    cluster.kill_node(3)
    seen: list[Any] = []

    def is_led_by_another() -> bool:
        (topic,) = described(cluster, name)["topics"]
        seen[:] = topic["partitions"]
        return bool(seen[0]["leaderId"] in (1, 2) and 3 not in seen[0]["isrNodes"])

    wait_until(is_led_by_another)
    assert seen[0]["replicaNodes"] == [3, 1, 2]
    assert sorted(seen[0]["isrNodes"]) == [1, 2]
