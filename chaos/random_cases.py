"""Cases made at random from the schemas, for a real Kafka and for us: one seed, the same cases.

Pure. A case makes two topics and then asks some requests about them. Fields that mean something
take their values from `POOLS`, all others from their type; what would make a real Kafka hang, or
leave it with a topic that nobody can remove, is never asked (docs/quirks.md).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.json_form import encode_body
from bridgehead.kafka_wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    STRING,
    UUID,
    Array,
    Wire,
    WireType,
    fields_of,
)

STEPS_PER_CASE: Final = 6
NO_ID: Final = "A" * 22
# Brokers are told of a write one after another; a read shall not race with that.
SETTLE_S: Final = 0.4


@dataclass(frozen=True, slots=True)
class Asked:
    """One API that is asked. `unordered`: paths of lists whose order is nobody's promise."""

    key: int
    unordered: tuple[str, ...]
    reads: bool = False


ASKED: Final = (
    Asked(2, ("topics", "topics.*.partitions"), reads=True),
    Asked(3, ("brokers", "topics", "topics.*.partitions"), reads=True),
    Asked(19, ("topics", "topics.*.configs")),
    Asked(20, ("responses",)),
    Asked(21, ("topics", "topics.*.partitions"), reads=True),
    Asked(32, ("results", "results.*.configs"), reads=True),
    Asked(33, ("responses",)),
    Asked(37, ("results",)),
    Asked(43, ("replicaElectionResults", "replicaElectionResults.*.partitionResult")),
    Asked(44, ("responses",)),
    Asked(45, ("responses", "responses.*.partitions")),
    Asked(46, ("topics",), reads=True),
    Asked(48, ("entries", "entries.*.values"), reads=True),
    Asked(49, ("entries",)),
    Asked(50, ("results",), reads=True),
    Asked(51, ("results",)),
    Asked(57, ("results",)),
    Asked(60, ("brokers",), reads=True),
)
_TOPICS: Final = ("$one", "$two", "$missing", "bad name", "")
_CONFIGS: Final = ("retention.ms", "cleanup.policy", "max.message.bytes", "no.such.config", "")
_VALUES: Final = ("1000", "delete", "compact,delete", "-5", "", "x", None)
_REPLICAS: Final = ([1], [2], [2, 1], [1, 1])
# `Struct.field` or the field alone, as the message classes call them.
POOLS: Final[Mapping[str, tuple[Any, ...]]] = {
    "timeout_ms": (0, 4000),
    "CreatableTopic.name": ("$new", "$other", "$one", "bad name", ""),
    "CreatableTopic.num_partitions": (-1, -1, 0, 1, 2, -2),
    "CreatableTopic.replication_factor": (-1, -1, 0, 1, 2, 4),
    "CreatableReplicaAssignment.partition_index": (0, 1, 3),
    "CreatableReplicaAssignment.broker_ids": _REPLICAS,
    "CreatableTopicConfig.name": _CONFIGS,
    "CreatableTopicConfig.value": _VALUES,
    "CreatePartitionsTopic.count": (-1, 0, 1, 2, 3),
    "CreatePartitionsAssignment.broker_ids": _REPLICAS,
    "ReassignablePartition.replicas": ([], [9], [1, 1], [-1], None),
    "AlterConfigsResource.resource_type": (2, 2, 2, 3, 0),
    "DescribeConfigsResource.resource_type": (2, 2, 4, 3, 0),
    "resource_name": (*_TOPICS, "1"),
    "AlterableConfig.name": _CONFIGS,
    "AlterableConfig.value": _VALUES,
    "config_operation": (0, 1, 2, 3, 9),
    "configuration_keys": ([], ["retention.ms"], ["no.such.config"], None),
    "partition_index": (0, 1, 7, -1),
    "partition_indexes": ([0], [0, 1], [7]),
    "ListOffsetsPartition.timestamp": (-1, -2, -3, 0, 10**14),
    "current_leader_epoch": (-1, 0, 5),
    "DeleteRecordsPartition.offset": (-1, 0, 1, -2),
    "entity_type": ("user", "client-id", "ip", "planet", ""),
    "entity_name": ("alice", "b c", "10.0.0.1", "", None),
    "OpData.key": ("consumer_byte_rate", "request_percentage", "connection_creation_rate", "x"),
    "OpData.value": (5.0, 0.5, 1e10),
    "match_type": (0, 1, 2),
    "match": ("alice", "b c", "x"),
    "mechanism": (0, 1, 2, 3),
    "iterations": (4096, 8192, 1, 20000),
    "salt": ("c2FsdA==",),
    "salted_password": ("cGFzc3dvcmQ=",),
    "election_type": (0, 1),
    "endpoint_type": (1, 2),
    "feature": ("metadata.version", "x", ""),
    "isolation_level": (0, 1),
    "replica_id": (-1,),
    "ScramCredentialUpsertion.name": ("alice", "b", ""),
    "ScramCredentialDeletion.name": ("alice", "b", ""),
    "UserName.name": ("alice", "b", ""),
    "topic_id": (NO_ID,),
    "name": _TOPICS,
    "topic": _TOPICS,
    "topic_names": (["$one"], ["$two", "$missing"], ["bad name"]),
    "partitions": ([0], [0, 1], [7]),
}
_NULL_ONE_IN: Final = 8


def random_cases(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield cases in the form of recordings, without answers."""
    for number in range(count):
        source = random.Random(f"{seed}-{number}")
        prefix = f"random-{seed}-{number}"
        words = {
            "$one": f"{prefix}-one",
            "$two": f"{prefix}-two",
            "$new": f"{prefix}-new",
            "$other": f"{prefix}-other",
            "$missing": f"{prefix}-missing",
        }
        steps = [_set_up(words)]
        steps += [_step(source, words) for _ in range(STEPS_PER_CASE)]
        yield {"case": prefix, "steps": steps}


def _set_up(words: Mapping[str, str]) -> dict[str, Any]:
    """Two topics whose replicas are given, so that both clusters place them alike."""
    topics = [
        {
            "name": words[name],
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [{"partitionIndex": 0, "brokerIds": ids}],
            "configs": [],
        }
        for name, ids in (("$one", [1, 2]), ("$two", [2]))
    ]
    body = {"topics": topics, "timeoutMs": 10_000, "validateOnly": False}
    return _asked(ASKED[2], 7, body, "controller")


def _step(source: random.Random, words: Mapping[str, str]) -> dict[str, Any]:
    asked = source.choice(ASKED)
    spec = API_SPECS[asked.key]
    version = source.choice(spec.versions)
    body = _struct(source, spec.request, version, words)
    _make_answerable(spec, body)
    return _asked(asked, version, body, source.choice(("controller", "other")))


def _asked(asked: Asked, version: int, body: dict[str, Any], to: str) -> dict[str, Any]:
    head = encode_request_header(RequestHeader(asked.key, version, 7, "random"))
    return {
        "to": to,
        "api": API_SPECS[asked.key].enum_name,
        "version": version,
        "body": body,
        "request_hex": (head + encode_body(asked.key, "request", version, body)).hex(),
        "unordered": asked.unordered,
        "settle_before": SETTLE_S if asked.reads else 0,
    }


def _make_answerable(spec: ApiSpec, body: dict[str, Any]) -> None:
    """A resource that AlterConfigs names twice is never answered."""
    if spec.key == 33:
        named = {(r["resourceType"], r["resourceName"]): r for r in body["resources"]}
        body["resources"] = list(named.values())


def _struct(
    source: random.Random, target: type[Any], version: int, words: Mapping[str, str]
) -> dict[str, Any]:
    return {
        field.json_name: _field(source, target, field, version, words)
        for field in fields_of(target)
        if version in field.versions and field.tag is None
    }


def _field(
    source: random.Random,
    target: type[Any],
    field: Wire,
    version: int,
    words: Mapping[str, str],
) -> Any:
    pool = POOLS.get(f"{target.__name__}.{field.name}")
    if pool is None and not _holds_structs(field.type):
        pool = POOLS.get(field.name)
    may_be_null = version in field.nullable
    if pool is not None:
        chosen = source.choice([each for each in pool if each is not None or may_be_null])
        return _worded(chosen, words)
    if may_be_null and source.randrange(_NULL_ONE_IN) == 0:
        return None
    return _value(source, field.type, version, words)


def _holds_structs(kind: WireType) -> bool:
    return isinstance(kind, Array) and isinstance(kind.of, type)


def _worded(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_worded(each, words) for each in value]
    return words.get(value, value) if isinstance(value, str) else value


def _value(source: random.Random, kind: WireType, version: int, words: Mapping[str, str]) -> Any:
    if isinstance(kind, Array):
        return [_value(source, kind.of, version, words) for _ in range(source.choice((0, 1, 1, 2)))]
    if isinstance(kind, type):
        return _struct(source, kind, version, words)
    if kind is BOOL:
        return source.choice((False, True))
    if kind is STRING:
        return source.choice(("", "x"))
    if kind is UUID:
        return NO_ID
    if kind is BYTES:
        return ""
    if kind is FLOAT64:
        return 1.0
    return source.choice((-1, 0, 1, 2))
