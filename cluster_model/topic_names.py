"""Topic names: validity and collisions (docs/kafka/topics.md)."""

from __future__ import annotations

import re
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode

LENGTH_MAX: Final = 249
# Marked as internal in Metadata.
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")
_NOT_IN_PATHS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def path_error(path: str) -> str | None:
    """Return the error text of ZooKeeper's Java client for a path; None if the path is valid.

    Positions are in UTF-16 code units, as in Java.
    """
    if path.endswith("/"):
        return "Path must not end with / character"
    units = "".join(each if each < "\U00010000" else "\ud800\udc00" for each in path)
    at = 1
    for node in units.split("/")[1:]:
        if not node:
            return _at("empty node name specified", path, at)
        if node in (".", ".."):
            return _at("relative paths not allowed", path, at + len(node) - 1)
        illegal = _NOT_IN_PATHS.search(node)
        if illegal is not None:
            problem = "invalid character" if illegal[0] != "\0" else "null character not allowed"
            return _at(problem, path, at + illegal.start())
        at += len(node) + 1
    return None


def _at(reason: str, path: str, index: int) -> str:
    return f'Invalid path string "{path}" caused by {reason} @{index}'


def has_valid_path(name: str) -> bool:
    """Return whether ZooKeeper's client accepts the znode path of a topic."""
    return path_error(f"/topics/{name}") is None


def check_topic_name(name: str) -> None:
    """Validate a topic name.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION with Kafka's text.
    """
    reason = _reason(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def _reason(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name.encode("utf-16-le", "surrogatepass")) // 2 > LENGTH_MAX:  # as Java counts
        return f"the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
    if not _LEGAL.match(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def may_collide(name: str) -> bool:
    """Return whether a name has `.` or `_`, which metric names do not distinguish."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return the key that colliding names share."""
    return name.replace(".", "_")
