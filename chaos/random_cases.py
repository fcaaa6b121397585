"""Cases made at random from the schemas, for a real Kafka and for us: one seed, the same cases.

Pure. A case makes two topics and then asks some requests, of every API that is served and in every
version. Fields that mean something take their values from `random_values.POOLS`, all others from
their type. A request in a flexible version may carry tagged fields that nobody knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.json_form import encode_body
from bridgehead.kafka_wire.messages.offset_fetch import OffsetFetchRequestGroup
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
from chaos.random_values import NO_ID, ODD, POOLS
from cluster_model.topic_names import has_a_path

STEPS_PER_CASE: Final = 6
# Brokers are told of a write one after another; what changes something shall not race with that.
SETTLE_S: Final = 0.05
SETTLE_MOVED_S: Final = 1.0  # a replica that moves has to be copied first
_LENGTHS: Final = (*(0, 1, 1, 1, 2, 2, 3) * 6, 25)
_UNKNOWN_TAGS_ONE_IN: Final = 6
_NULL_ONE_IN: Final = 8
_INTERNAL_PARTITIONS: Final = 50  # Kafka's default, by which its brokers find coordinators
_TOPIC, _BROKER, _LOGGER, _METRICS = 2, 4, 8, 16  # types of resources
_NEVER_REACHED: Final = 1e10


@dataclass(frozen=True, slots=True)
class Asked:
    """One API that is asked. `unordered`: paths of lists whose order is nobody's promise."""

    key: int
    unordered: tuple[str, ...]
    reads: bool = False


_GROUP_PARTITIONS: Final = ("groups", "groups.*.topics", "groups.*.topics.*.partitions")
_TOPIC_PARTITIONS: Final = ("topics", "topics.*.partitions")
ASKED: Final = (
    Asked(2, _TOPIC_PARTITIONS, reads=True),
    Asked(3, ("brokers", *_TOPIC_PARTITIONS), reads=True),
    Asked(9, (*_TOPIC_PARTITIONS, *_GROUP_PARTITIONS), reads=True),
    Asked(10, (), reads=True),
    Asked(15, ("groups",), reads=True),
    Asked(16, ("groups",), reads=True),
    Asked(17, (), reads=True),
    Asked(18, (), reads=True),
    Asked(19, ("topics", "topics.*.configs")),
    Asked(20, ("responses",)),
    Asked(21, _TOPIC_PARTITIONS, reads=True),
    Asked(29, ("resources", "resources.*.acls"), reads=True),
    Asked(30, ()),
    Asked(31, ("filterResults.*.matchingAcls",)),
    Asked(32, ("results", "results.*.configs"), reads=True),
    Asked(33, ("responses",)),
    Asked(34, ("results", "results.*.partitions"), reads=True),
    Asked(35, ("results", "results.*.topics", "results.*.topics.*.partitions"), reads=True),
    Asked(36, (), reads=True),
    Asked(37, ("results",)),
    Asked(38, (), reads=True),
    Asked(39, (), reads=True),
    Asked(40, (), reads=True),
    Asked(41, (), reads=True),
    Asked(42, ("results",), reads=True),
    Asked(43, ("replicaElectionResults", "replicaElectionResults.*.partitionResult")),
    Asked(44, ("responses",)),
    Asked(45, ("responses", "responses.*.partitions")),
    Asked(46, ("topics",), reads=True),
    Asked(47, _TOPIC_PARTITIONS, reads=True),
    Asked(48, ("entries", "entries.*.values"), reads=True),
    Asked(49, ("entries",)),
    Asked(50, ("results",), reads=True),
    Asked(51, ("results",)),
    Asked(57, ("results",)),
    Asked(60, ("brokers",), reads=True),
    Asked(61, _TOPIC_PARTITIONS, reads=True),
    Asked(65, ("transactionStates",), reads=True),
    Asked(66, ("transactionStates", "unknownStateFilters"), reads=True),
    Asked(68, (), reads=True),
    Asked(69, ("groups",), reads=True),
)
_BY_KEY: Final = {asked.key: asked for asked in ASKED}
# Those whose answers depend on what was written come as often again.
_CHOSEN: Final = (
    *ASKED,
    *(_BY_KEY[key] for key in (3, 19, 20, 30, 31, 29, 32, 37, 44, 45, 48, 49)),
)


def random_cases(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield cases in the form of recordings, without answers; the first makes internal topics."""
    yield {"case": "internal-topics", "steps": [_internal_topics()]}
    for number in range(count):
        source = random.Random(f"{seed}-{number}")
        prefix = f"random-{seed}-{number}"
        words = {
            f"${word}": f"{prefix}-{word}" for word in ("one", "two", "new", "other", "missing")
        }
        words |= {"$dotted": f"{prefix}-a.b", "$scored": f"{prefix}-a_b"}
        steps = [_set_up(words)]
        for _ in range(STEPS_PER_CASE):
            steps.append(_step(source, words, after=steps[-1]))
        yield {"case": prefix, "steps": steps}


def _internal_topics() -> dict[str, Any]:
    """Those of groups and transactions, placed alike, so that both name the same coordinators."""
    placed = [(number, [number % 3 + 1]) for number in range(_INTERNAL_PARTITIONS)]
    names = ("__consumer_offsets", "__transaction_state")
    return _creation([(name, placed) for name in names])


def _set_up(words: Mapping[str, str]) -> dict[str, Any]:
    """Two topics whose replicas are given, so that both clusters place them alike."""
    step = _creation([(words["$one"], [(0, [1, 2])]), (words["$two"], [(0, [2])])])
    return {**step, "capture": {"one_id": "topics.0.topicId", "two_id": "topics.1.topicId"}}


def _creation(topics: list[tuple[str, list[tuple[int, list[int]]]]]) -> dict[str, Any]:
    made = [
        {
            "name": name,
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [{"partitionIndex": at, "brokerIds": ids} for at, ids in placed],
            "configs": [],
        }
        for name, placed in topics
    ]
    body = {"topics": made, "timeoutMs": 10_000, "validateOnly": False}
    return _asked(_BY_KEY[19], 7, body, "broker:2", SETTLE_S)


def _step(
    source: random.Random, words: Mapping[str, str], after: Mapping[str, Any]
) -> dict[str, Any]:
    asked = source.choice(_CHOSEN)
    spec = API_SPECS[asked.key]
    version = source.choice(spec.versions)
    to = f"broker:{source.choice((1, 2, 3))}"
    body = _struct(source, spec.request, version, words)
    if asked.key == 9 and body.get("groups") == []:  # Who asks for no group is never answered.
        body["groups"] = [_struct(source, OffsetFetchRequestGroup, version, words)]
    _make_answerable(spec, body, to)
    moved = after["api"] == "ALTER_PARTITION_REASSIGNMENTS"
    wait_s = SETTLE_MOVED_S if moved else 0.0 if after["reads"] else SETTLE_S
    step = _asked(asked, version, body, to, wait_s)
    if spec.request_header_version(version) == 2 and not source.randrange(_UNKNOWN_TAGS_ONE_IN):
        step["unknown_tags"] = True
    return step


def _asked(
    asked: Asked, version: int, body: dict[str, Any], to: str, wait_s: float
) -> dict[str, Any]:
    head = encode_request_header(RequestHeader(asked.key, version, 7, "random"))
    sent = _without_words(body)
    reads = asked.reads or body.get("validateOnly") is True
    return {
        "to": to,
        "api": API_SPECS[asked.key].enum_name,
        "version": version,
        "body": body,
        "request_hex": (head + encode_body(asked.key, "request", version, sent)).hex(),
        "unordered": asked.unordered,
        "reads": reads,
        # Only what changes nothing can be asked again until it is as expected.
        "settle_before" if reads else "pause_before": wait_s,
    }


def _make_answerable(spec: ApiSpec, body: dict[str, Any], to: str) -> None:
    """Take out what a real Kafka never answers, or what only one of both clusters would do."""
    if spec.key == 33:  # A resource that AlterConfigs names twice is never answered.
        for resource in body["resources"]:
            if resource["resourceType"] == _BROKER and f"broker:{resource['resourceName']}" != to:
                resource["resourceName"] = ""  # row `alter-configs-named-broker`
        # Types that it does not know are one to it.
        kinds = {kind: kind for kind in (_TOPIC, _BROKER, _LOGGER, _METRICS)}
        named = {(kinds.get(r["resourceType"]), r["resourceName"]): r for r in body["resources"]}
        body["resources"] = list(named.values())
    if spec.key == 32:  # What a broker was started with is another thing at each.
        for resource in body["resources"]:
            if resource["resourceType"] not in (_TOPIC, 0) and not resource["configurationKeys"]:
                resource["configurationKeys"] = ["log.retention.ms", "root"]
    if spec.key == 35 and body["topics"] is None:  # Other cases' topics are placed at random.
        body["topics"] = []
    if spec.key == 37 and not all(has_a_path(topic["name"]) for topic in body["topics"]):
        body["validateOnly"] = True  # row `create-partitions-name-without-path`
    if spec.key == 49:  # A limit of everybody would be one of these requests.
        for entry in body["entries"]:
            if any(part["entityName"] is None for part in entry["entity"]):
                for operation in entry["ops"]:
                    operation["value"] = _NEVER_REACHED


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


def _without_words(value: Any) -> Any:
    """Return what can be sent where the ids of this cluster's topics are not known yet."""
    if isinstance(value, dict):
        return {key: _without_words(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_words(each) for each in value]
    return NO_ID if isinstance(value, str) and value.startswith("$") else value


def _value(source: random.Random, kind: WireType, version: int, words: Mapping[str, str]) -> Any:
    if isinstance(kind, Array):
        length = source.choice(_LENGTHS)
        return [_value(source, kind.of, version, words) for _ in range(length)]
    if isinstance(kind, type):
        return _struct(source, kind, version, words)
    if kind is BOOL:
        return source.choice((False, True))
    if kind is STRING:
        return source.choice(("", "x", ODD))
    if kind is UUID:
        return NO_ID
    if kind is BYTES:
        return ""
    if kind is FLOAT64:
        return 1.0
    return source.choice((-1, 0, 1, 2, 127, -128))
