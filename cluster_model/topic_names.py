"""Topic names: validity and collisions (docs/kafka/topics.md)."""

from __future__ import annotations

import re
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.znode_names import path_error

LENGTH_MAX: Final = 249
# Marked as internal in Metadata.
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")


def has_valid_path(name: str) -> bool:
    """Return whether ZooKeeper's client accepts the znode path of a topic."""
    return path_error(f"/topics/{name}") is None


def is_legal(name: str) -> bool:
    """Return whether a topic may have this name."""
    return _reason(name) is None


def check_topic_name(name: str) -> None:
    """Validate a topic name.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION with Kafka's text.
    """
    reason = _reason(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_valid_topic_name(name: str) -> bool:
    """Return whether `check_topic_name` accepts a name."""
    return _reason(name) is None


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
