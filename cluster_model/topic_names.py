"""What a topic may be called (kafka-semantics 7.1, 7.2)."""

from __future__ import annotations

import re
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode

LENGTH_MAX: Final = 249
# Kafka's own topics; Metadata marks them as internal.
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")
_NOT_IN_PATHS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def path_fault(path: str) -> str | None:
    """Return why ZooKeeper's client refuses to ask for a path, in its words; None: it does not.

    It reads as Java does, where a character beyond the first plane of Unicode is two.
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
            what = "invalid character" if illegal[0] != "\0" else "null character not allowed"
            return _at(what, path, at + illegal.start())
        at += len(node) + 1
    return None


def _at(reason: str, path: str, index: int) -> str:
    return f'Invalid path string "{path}" caused by {reason} @{index}'


def has_a_path(name: str) -> bool:
    """False for a name whose znode ZooKeeper's client refuses to ask for, whatever the name is."""
    return path_fault(f"/topics/{name}") is None


def check_topic_name(name: str) -> None:
    """Refuse an illegal name.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION with Kafka's text; definite.
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
    """True for a name with `.` or `_`, which metric names cannot tell apart."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return what two colliding names have in common."""
    return name.replace(".", "_")
