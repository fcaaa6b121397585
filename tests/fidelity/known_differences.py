"""Intended differences from a real Kafka 3.9.1. docs/differences.md has the reasons, by name.

If our response differs from Kafka's, `tests.fidelity.replay` calls `explains` of each row that has
the step's API. A row must explain its own difference and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_BROKERS: Final = frozenset({1, 2, 3})
_BROKER: Final = 4  # ConfigResource type BROKER


@dataclass(frozen=True, slots=True)
class Difference:
    """One row. `api`: the API of a step, or `raw`. `explains` gets a step and both responses."""

    name: str
    api: str
    explains: Callable[[Mapping[str, Any], Any, Any], bool]


def _unusable_assignment(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    replicas = [a["brokerIds"] for t in step["body"]["topics"] for a in t["assignments"]]
    unusable = any(not ids or min(ids) < 0 or not set(ids) & _BROKERS for ids in replicas)
    return unusable and _codes(kafkas, "topics") == [7] and _codes(ours, "topics") == [39]


def _negative_partition(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Return whether the differing topics have code -1 in Kafka's response and 39 in ours."""
    pairs = _differing(kafkas, ours, "topics")
    if {(a["errorCode"], b["errorCode"]) for a, b in pairs} != {(-1, 39)}:
        return False
    names = {a["name"] for a, _ in pairs}
    topics = [topic for topic in step["body"]["topics"] if topic["name"] in names]
    return all(any(a["partitionIndex"] < 0 for a in topic["assignments"]) for topic in topics)


def _deleted_before(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    theirs, mine = _codes(kafkas, "responses"), _codes(ours, "responses")
    return set(theirs) == {3} and mine == [100] * len(theirs)


def _named_twice(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    named = [(r["resourceType"], r["resourceName"]) for r in step["body"]["resources"]]
    responded = _codes(ours, "responses") == [42] * len(named)
    return len(set(named)) < len(named) and kafkas == "timeout" and responded


def _denied_instead_of_timeout(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    denied = (ours.get("errorCode"), ours.get("results")) if isinstance(ours, dict) else None
    return step["body"].get("users", ()) is None and kafkas == "timeout" and denied == (31, [])


def _existence_hidden(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Return whether the differing elements have no name, and code 100 instead of Kafka's 29."""
    pairs = _differing(kafkas, ours, "responses")
    hidden = [{**a, "errorCode": 100} == b and a["errorCode"] == 29 for a, b in pairs]
    return bool(hidden) and all(hidden) and all(a["name"] is None for a, _ in pairs)


def _learned_sooner(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    changed = [_cluster_default(config) for config in _configs(ours)]
    kept = [_cluster_default(config) for config in _configs(kafkas)]
    names = {config["name"] for config in _configs(ours)} <= {"log.retention.ms", "retention.ms"}
    return names and changed == ["999999"] and kept in ([], [None])


def _configs(response: Any) -> list[dict[str, Any]]:
    """Return the configs of a successful DescribeConfigs response for one resource."""
    results = response.get("results", []) if isinstance(response, dict) else []
    return results[0]["configs"] if _codes(response, "results") == [0] else []


def _cluster_default(config: Mapping[str, Any]) -> str | None:
    """Return the config's value if it is a dynamic cluster default (source 3)."""
    return config["value"] if config["configSource"] == 3 else None


def _codes(response: Any, key: str) -> list[int]:
    """Return the error codes of a response's elements; none if there is no response."""
    return [element["errorCode"] for element in _elements(response, key)]


def _differing(kafkas: Any, ours: Any, key: str) -> list[tuple[Any, Any]]:
    """Return pairs of differing elements; none if the responses differ in length."""
    theirs, mine = _elements(kafkas, key), _elements(ours, key)
    if len(theirs) != len(mine):
        return []
    return [(a, b) for a, b in zip(theirs, mine, strict=True) if a != b]


def _elements(response: Any, key: str) -> list[Any]:
    return response.get(key, []) if isinstance(response, dict) else []


def _named_broker_decides(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Return whether the only difference is that Kafka rejects configs of a named broker."""
    if not isinstance(kafkas, dict) or not isinstance(ours, dict):
        return False
    others: list[tuple[Any, Any]] = []
    named: list[tuple[Any, Any]] = []
    for resource, theirs, mine in zip(
        step["body"]["resources"], kafkas["responses"], ours["responses"], strict=False
    ):
        is_named = resource["resourceType"] == _BROKER and resource["resourceName"]
        (named if is_named else others).append((theirs, mine))
    rejected = all("Unexpected broker id" in (theirs["errorMessage"] or "") for theirs, _ in named)
    decided = all(mine["errorCode"] in (0, 31) for _, mine in named)
    return bool(named) and rejected and decided and all(a == b for a, b in others)


def _bytes_unknown(_step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Return whether the responses differ only in the sizes of directories."""
    if not isinstance(kafkas, dict) or not isinstance(ours, dict):
        return False
    unknown = {"totalBytes": -1, "usableBytes": -1}
    measured = [
        {**result, **{key: value for key, value in unknown.items() if key in result}}
        for result in kafkas.get("results", [])
    ]
    return bool({**kafkas, "results": measured} == ours)


def _in_zookeeper(step: Mapping[str, Any], kafkas: Any, ours: Any) -> bool:
    """Return whether Kafka answers an OffsetCommit of version 0 and we close the connection."""
    is_version_0 = str(step["raw"]).startswith("00080000")
    return is_version_0 and kafkas != "closed" and bool(ours == "closed")


KNOWN_DIFFERENCES: Final = (
    Difference("create-topics-unusable-assignment", "CREATE_TOPICS", _unusable_assignment),
    Difference("create-topics-negative-partition", "CREATE_TOPICS", _negative_partition),
    Difference("delete-topics-deleted-before", "DELETE_TOPICS", _deleted_before),
    Difference("alter-configs-duplicate", "ALTER_CONFIGS", _named_twice),
    Difference("alter-configs-named-broker", "ALTER_CONFIGS", _named_broker_decides),
    Difference(
        "describe-user-scram-credentials-denied",
        "DESCRIBE_USER_SCRAM_CREDENTIALS",
        _denied_instead_of_timeout,
    ),
    Difference("delete-topics-by-id-denied", "DELETE_TOPICS", _existence_hidden),
    Difference("describe-configs-learned-sooner", "DESCRIBE_CONFIGS", _learned_sooner),
    Difference("describe-log-dirs-bytes", "DESCRIBE_LOG_DIRS", _bytes_unknown),
    Difference("offset-commit-zookeeper", "raw", _in_zookeeper),
)
