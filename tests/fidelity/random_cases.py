"""Random cases from the schemas, for a real Kafka and for Bridgehead. A seed determines them.

Pure. A case creates two topics and then sends requests. The API and the version of each request are
chosen at random from those that brokers serve. A field's value comes from `random_values.POOLS` or,
if no pool has the field, from its type. A request in a flexible version may have unknown tagged
fields.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec, Route
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
from cluster_model.direct_writes import TOKEN_WRITES
from cluster_model.topic_names import has_valid_path
from tests.fidelity.random_values import NO_ID, ODD, POOLS

STEPS_PER_CASE: Final = 6
# Brokers apply a write at different times, so the step after a write is delayed by this time. If it
# is a read, it is repeated on our cluster, for at most this time, until the responses are equal.
SETTLE_S: Final = 0.05
SETTLE_MOVED_S: Final = 1.0  # a moved replica has to be copied first
_LENGTHS: Final = (*(0, 1, 1, 1, 2, 2, 3) * 6, 25)
_UNKNOWN_TAGS_ONE_IN: Final = 6
_NULL_ONE_IN: Final = 8
_INTERNAL_PARTITIONS: Final = 50  # Kafka's default, which determines the coordinators
_TOPIC, _BROKER, _LOGGER, _METRICS = 2, 4, 8, 16  # types of resources
_NEVER_REACHED: Final = 1e10


K = ApiKey


@dataclass(frozen=True, slots=True)
class RandomApi:
    """An API of the cases. `unordered`: paths of lists in the response whose order varies."""

    key: int
    unordered: tuple[str, ...]
    reads: bool


_TOPIC_PARTITIONS: Final = ("topics", "topics.*.partitions")
_UNORDERED: Final[Mapping[int, tuple[str, ...]]] = {
    K.LIST_OFFSETS: _TOPIC_PARTITIONS,
    K.METADATA: ("brokers", *_TOPIC_PARTITIONS),
    K.OFFSET_FETCH: (
        *_TOPIC_PARTITIONS,
        *("groups", "groups.*.topics", "groups.*.topics.*.partitions"),
    ),
    K.DESCRIBE_GROUPS: ("groups",),
    K.LIST_GROUPS: ("groups",),
    K.CREATE_TOPICS: ("topics", "topics.*.configs"),
    K.DELETE_TOPICS: ("responses",),
    K.DELETE_RECORDS: _TOPIC_PARTITIONS,
    K.DESCRIBE_ACLS: ("resources", "resources.*.acls"),
    K.DELETE_ACLS: ("filterResults.*.matchingAcls",),
    K.DESCRIBE_CONFIGS: ("results", "results.*.configs"),
    K.ALTER_CONFIGS: ("responses",),
    K.ALTER_REPLICA_LOG_DIRS: ("results", "results.*.partitions"),
    K.DESCRIBE_LOG_DIRS: ("results", "results.*.topics", "results.*.topics.*.partitions"),
    K.CREATE_PARTITIONS: ("results",),
    K.DELETE_GROUPS: ("results",),
    K.ELECT_LEADERS: ("replicaElectionResults", "replicaElectionResults.*.partitionResult"),
    K.INCREMENTAL_ALTER_CONFIGS: ("responses",),
    K.ALTER_PARTITION_REASSIGNMENTS: ("responses", "responses.*.partitions"),
    K.LIST_PARTITION_REASSIGNMENTS: ("topics",),
    K.OFFSET_DELETE: _TOPIC_PARTITIONS,
    K.DESCRIBE_CLIENT_QUOTAS: ("entries", "entries.*.values"),
    K.ALTER_CLIENT_QUOTAS: ("entries",),
    K.DESCRIBE_USER_SCRAM_CREDENTIALS: ("results",),
    K.ALTER_USER_SCRAM_CREDENTIALS: ("results",),
    K.UPDATE_FEATURES: ("results",),
    K.DESCRIBE_CLUSTER: ("brokers",),
    K.DESCRIBE_PRODUCERS: _TOPIC_PARTITIONS,
    K.DESCRIBE_TRANSACTIONS: ("transactionStates",),
    K.LIST_TRANSACTIONS: ("transactionStates", "unknownStateFilters"),
    K.CONSUMER_GROUP_DESCRIBE: ("groups",),
}
# These APIs are forwarded but change nothing (tokens are disabled in both clusters).
_WITHOUT_EFFECT: Final = TOKEN_WRITES | {K.LIST_PARTITION_REASSIGNMENTS}
# Every API that needs no data plane, except Envelope. Recordings cover Envelope, for each kind of
# sender.
APIS: Final = tuple(
    RandomApi(
        key,
        _UNORDERED.get(key, ()),
        reads=spec.route is Route.LOCAL or key in _WITHOUT_EFFECT,
    )
    for key, spec in sorted(API_SPECS.items())
    if spec.route is not None and not spec.needs_data_plane and key != K.ENVELOPE
)
_BY_KEY: Final = {api.key: api for api in APIS}
# Cases have more requests of these APIs, because their responses depend on earlier writes.
_CHOSEN_TWICE: Final = (
    *(K.METADATA, K.CREATE_TOPICS, K.DELETE_TOPICS, K.CREATE_ACLS, K.DELETE_ACLS, K.DESCRIBE_ACLS),
    *(K.DESCRIBE_CONFIGS, K.CREATE_PARTITIONS, K.INCREMENTAL_ALTER_CONFIGS),
    *(K.ALTER_PARTITION_REASSIGNMENTS, K.DESCRIBE_CLIENT_QUOTAS, K.ALTER_CLIENT_QUOTAS),
)
_CHOSEN: Final = (*APIS, *(_BY_KEY[key] for key in _CHOSEN_TWICE))


def random_cases(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield cases in the form of recordings. The first one creates the internal topics."""
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
    """Create the internal topics with given replicas.

    Both clusters then have the same coordinators.
    """
    placed = [(number, [number % 3 + 1]) for number in range(_INTERNAL_PARTITIONS)]
    names = ("__consumer_offsets", "__transaction_state")
    return _creation([(name, placed) for name in names])


def _set_up(words: Mapping[str, str]) -> dict[str, Any]:
    """Create two topics with given replicas, so that they are equal in both clusters."""
    step = _creation([(words["$one"], [(0, [1, 2])]), (words["$two"], [(0, [2])])])
    return {**step, "capture": {"one_id": "topics.0.topicId", "two_id": "topics.1.topicId"}}


def _creation(topics: list[tuple[str, list[tuple[int, list[int]]]]]) -> dict[str, Any]:
    creations = [
        {
            "name": name,
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [{"partitionIndex": at, "brokerIds": ids} for at, ids in placed],
            "configs": [],
        }
        for name, placed in topics
    ]
    body = {"topics": creations, "timeoutMs": 10_000, "validateOnly": False}
    return _request_step(_BY_KEY[K.CREATE_TOPICS], 7, body, "broker:2", SETTLE_S)


def _step(
    source: random.Random, words: Mapping[str, str], after: Mapping[str, Any]
) -> dict[str, Any]:
    api = source.choice(_CHOSEN)
    spec = API_SPECS[api.key]
    version = source.choice(spec.versions)
    to = f"broker:{source.choice((1, 2, 3))}"
    body = _struct(source, spec.request, version, words)
    if api.key == K.OFFSET_FETCH and body.get("groups") == []:  # Kafka never answers this.
        body["groups"] = [_struct(source, OffsetFetchRequestGroup, version, words)]
    _make_valid(spec, body, to)
    moved = after["api"] == "ALTER_PARTITION_REASSIGNMENTS"
    wait_s = SETTLE_MOVED_S if moved else 0.0 if after["reads"] else SETTLE_S
    step = _request_step(api, version, body, to, wait_s)
    if spec.request_header_version(version) == 2 and not source.randrange(_UNKNOWN_TAGS_ONE_IN):
        step["unknown_tags"] = True
    return step


def _request_step(
    api: RandomApi, version: int, body: dict[str, Any], to: str, wait_s: float
) -> dict[str, Any]:
    head = encode_request_header(RequestHeader(api.key, version, 7, "random"))
    sent = _without_words(body)
    reads = api.reads or body.get("validateOnly") is True
    return {
        "to": to,
        "api": API_SPECS[api.key].enum_name,
        "version": version,
        "body": body,
        "request_hex": (head + encode_body(api.key, "request", version, sent)).hex(),
        "unordered": api.unordered,
        "reads": reads,
        # Only reads can be repeated until the response is as expected.
        "settle_before" if reads else "pause_before": wait_s,
    }


def _make_valid(spec: ApiSpec, body: dict[str, Any], to: str) -> None:
    """Remove what a real Kafka never answers, and what the two clusters answer differently."""
    if spec.key is K.ALTER_CONFIGS:  # Kafka does not answer if a resource is named twice.
        for resource in body["resources"]:
            if resource["resourceType"] == _BROKER and f"broker:{resource['resourceName']}" != to:
                resource["resourceName"] = ""  # row `alter-configs-named-broker`
        # Kafka treats all unknown types as one.
        kinds = {kind: kind for kind in (_TOPIC, _BROKER, _LOGGER, _METRICS)}
        named = {(kinds.get(r["resourceType"]), r["resourceName"]): r for r in body["resources"]}
        body["resources"] = list(named.values())
    if spec.key is K.DESCRIBE_CONFIGS:  # The static configs differ between the clusters.
        for resource in body["resources"]:
            if resource["resourceType"] not in (_TOPIC, 0) and not resource["configurationKeys"]:
                resource["configurationKeys"] = ["log.retention.ms", "root"]
    if spec.key is K.DESCRIBE_LOG_DIRS and body["topics"] is None:
        body["topics"] = []  # other cases' topics have random replicas
    if spec.key is K.CREATE_PARTITIONS and not all(
        has_valid_path(topic["name"]) for topic in body["topics"]
    ):
        body["validateOnly"] = True  # row `create-partitions-name-without-path`
    if spec.key is K.ALTER_CLIENT_QUOTAS:  # A default quota would throttle these requests, too.
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
        chosen = source.choice(
            [candidate for candidate in pool if candidate is not None or may_be_null]
        )
        return _worded(chosen, words)
    if may_be_null and source.randrange(_NULL_ONE_IN) == 0:
        return None
    return _value(source, field.type, version, words)


def _holds_structs(kind: WireType) -> bool:
    return isinstance(kind, Array) and isinstance(kind.of, type)


def _worded(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_worded(item, words) for item in value]
    return words.get(value, value) if isinstance(value, str) else value


def _without_words(value: Any) -> Any:
    """Replace placeholders of topic ids by NO_ID, because the ids are not known yet."""
    if isinstance(value, dict):
        return {key: _without_words(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_words(item) for item in value]
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
