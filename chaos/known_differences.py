"""Where an answer differs from a real Kafka 3.9.1's, on purpose; docs/differences.md has the rows.

Pure: each row says of a step, Kafka's answer and ours (as `chaos.fidelity` compares them) whether
it explains how they differ. A row must not explain more than it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_BROKERS: Final = frozenset({1, 2, 3})
_BROKER: Final = 4  # a resource's type


@dataclass(frozen=True, slots=True)
class Difference:
    """One row. `explains(step, kafkas, ours)`; `api` as recordings spell it, or `raw`."""

    name: str
    api: str
    reason: str
    explains: Callable[[Mapping[str, Any], Any, Any], bool]


def _unusable_assignment(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    replicas = [a["brokerIds"] for t in step["body"]["topics"] for a in t["assignments"]]
    unusable = any(not ids or min(ids) < 0 or not set(ids) & _BROKERS for ids in replicas)
    return unusable and _codes(kafkas, "topics") == [7] and _codes(ours, "topics") == [39]


def _negative_partition(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """The only differing topics: -1 in Kafka's answer and 39 in ours."""
    pairs = _differing(kafkas, ours, "topics")
    if {(a["errorCode"], b["errorCode"]) for a, b in pairs} != {(-1, 39)}:
        return False
    refused = {a["name"] for a, _ in pairs}
    asked = [topic for topic in step["body"]["topics"] if topic["name"] in refused]
    return all(any(a["partitionIndex"] < 0 for a in topic["assignments"]) for topic in asked)


def _deleted_before(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    codes, here = _codes(kafkas, "responses"), _codes(ours, "responses")
    return set(codes) == {3} and here == [100] * len(codes)


def _named_twice(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    named = [(r["resourceType"], r["resourceName"]) for r in step["body"]["resources"]]
    answered = _codes(ours, "responses") == [42] * len(named)
    return len(set(named)) < len(named) and kafkas == "timeout" and answered


def _refused_instead_of_silence(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    told = (ours.get("errorCode"), ours.get("results")) if isinstance(ours, dict) else None
    return step["body"].get("users", ()) is None and kafkas == "timeout" and told == (31, [])


def _existence_hidden(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """The only differing elements: no name, 29 in Kafka's answer and 100 in ours."""
    pairs = _differing(kafkas, ours, "responses")
    hidden = [{**a, "errorCode": 100} == b and a["errorCode"] == 29 for a, b in pairs]
    return bool(hidden) and all(hidden) and all(a["name"] is None for a, _ in pairs)


def _learned_sooner(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    changed = [_cluster_default(config) for config in _configs(ours)]
    kept = [_cluster_default(config) for config in _configs(kafkas)]
    names = {config["name"] for config in _configs(ours)} <= {"log.retention.ms", "retention.ms"}
    return names and changed == ["999999"] and kept in ([], [None])


def _configs(answer: Any) -> list[dict[str, Any]]:
    """Return the configs of a DescribeConfigs answer of one resource that succeeded."""
    results = answer.get("results", []) if isinstance(answer, dict) else []
    return results[0]["configs"] if _codes(answer, "results") == [0] else []


def _cluster_default(config: Mapping[str, Any]) -> str | None:
    """Return the config's value if it is a dynamic cluster default (source 3)."""
    return config["value"] if config["configSource"] == 3 else None


def _codes(answer: Any, key: str) -> list[int]:
    """Return the error codes of an answer's elements; none when there is no answer."""
    return [element["errorCode"] for element in _elements(answer, key)]


def _differing(kafkas: Any, ours: Any, key: str) -> list[tuple[Any, Any]]:
    """Return the elements that differ, in pairs; none where one answer has more of them."""
    told, here = _elements(kafkas, key), _elements(ours, key)
    if len(told) != len(here):
        return []
    return [(a, b) for a, b in zip(told, here, strict=True) if a != b]


def _elements(answer: Any, key: str) -> list[Any]:
    return answer.get(key, []) if isinstance(answer, dict) else []


def _named_broker_judges(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Equal, but for what Kafka's controller says of the broker that was asked to alter itself."""
    if not isinstance(kafkas, dict) or not isinstance(ours, dict):
        return False
    told, here = kafkas["responses"], ours["responses"]
    others: list[tuple[Any, Any]] = []
    named: list[tuple[Any, Any]] = []
    for asked, theirs, mine in zip(step["body"]["resources"], told, here, strict=False):
        is_named = asked["resourceType"] == _BROKER and asked["resourceName"]
        (named if is_named else others).append((theirs, mine))
    refused = all("Unexpected broker id" in (theirs["errorMessage"] or "") for theirs, _ in named)
    judged = all(mine["errorCode"] in (0, 31) for _, mine in named)
    return bool(named) and refused and judged and all(a == b for a, b in others)


def _bytes_unknown(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Equal, but for what a directory has room for."""
    if not isinstance(kafkas, dict) or not isinstance(ours, dict):
        return False
    unknown = {"totalBytes": -1, "usableBytes": -1}
    measured = [
        {**each, **{key: value for key, value in unknown.items() if key in each}}
        for each in kafkas.get("results", [])
    ]
    return bool({**kafkas, "results": measured} == ours)


# A row is found by its name in docs/differences.md.
KNOWN_DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(
        "create-topics-unusable-assignment",
        "CREATE_TOPICS",
        "A partition without a live replica, with none or with a negative id is refused with "
        "INVALID_REPLICA_ASSIGNMENT; Kafka creates the topic, which gets no leader, and says "
        "REQUEST_TIMED_OUT.",
        _unusable_assignment,
    ),
    Difference(
        "create-topics-negative-partition",
        "CREATE_TOPICS",
        "A partition with a negative number is refused with INVALID_REPLICA_ASSIGNMENT; Kafka "
        "says UNKNOWN_SERVER_ERROR where the other numbers add up. Neither creates the topic.",
        _negative_partition,
    ),
    Difference(
        "delete-topics-deleted-before",
        "DELETE_TOPICS",
        "An id whose topic was deleted is UNKNOWN_TOPIC_ID at once; Kafka knows the id until its "
        "controller has finished, and says UNKNOWN_TOPIC_OR_PARTITION.",
        _deleted_before,
    ),
    Difference(
        "alter-configs-duplicate",
        "ALTER_CONFIGS",
        "A resource that is named twice is INVALID_REQUEST; Kafka never answers. "
        "The quirk alter-configs-duplicate-hangs brings that back.",
        _named_twice,
    ),
    Difference(
        "alter-configs-named-broker",
        "ALTER_CONFIGS",
        "A broker that is asked to alter itself does so, or says who may not; Kafka's forwards it "
        "to a controller that refuses every broker but itself.",
        _named_broker_judges,
    ),
    Difference(
        "describe-user-scram-credentials-denied",
        "DESCRIBE_USER_SCRAM_CREDENTIALS",
        "Who asks for all users without the right is told CLUSTER_AUTHORIZATION_FAILED; Kafka "
        "never answers.",
        _refused_instead_of_silence,
    ),
    Difference(
        "delete-topics-by-id-denied",
        "DELETE_TOPICS",
        "Who may not describe a topic is told UNKNOWN_TOPIC_ID for its id, as for an id that "
        "nobody has; Kafka tells which ids exist.",
        _existence_hidden,
    ),
    Difference(
        "describe-configs-learned-sooner",
        "DESCRIBE_CONFIGS",
        "In one recorded case Kafka's broker did not know yet, 0.3 s later, a cluster default that "
        "was set through another broker; in the same case of the other recordings it did.",
        _learned_sooner,
    ),
    Difference(
        "describe-log-dirs-bytes",
        "DESCRIBE_LOG_DIRS",
        "The bytes of a directory are not known (-1): without a data plane none is touched.",
        _bytes_unknown,
    ),
)
