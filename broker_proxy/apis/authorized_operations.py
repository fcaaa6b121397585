"""The bit fields of a client's authorized operations (docs/kafka/metadata.md)."""

from __future__ import annotations

from cluster_model.authorization import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
    Authorize,
    authorized_operations,
)


def topic_operations(authorize: Authorize, name: str) -> int:
    """Return the client's operations on a topic, one bit per operation code."""
    return authorized_operations(authorize, TOPIC_OPERATIONS, "TOPIC", name)


def group_operations(authorize: Authorize, group_id: str) -> int:
    """Return the client's operations on a group."""
    return authorized_operations(authorize, GROUP_OPERATIONS, "GROUP", group_id)


def cluster_operations(authorize: Authorize) -> int:
    """Return the client's operations on the cluster; 0 without DESCRIBE."""
    if not authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return 0
    return authorized_operations(authorize, CLUSTER_OPERATIONS, "CLUSTER", CLUSTER_NAME)
