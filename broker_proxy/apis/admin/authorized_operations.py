"""The bit fields of the operations that a client may perform (docs/kafka/metadata.md)."""

from __future__ import annotations

from cluster_model.acls.authorization import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
    Authorize,
    authorized_operations,
)


def topic_operations(authorize: Authorize, name: str) -> int:
    """Return what the client may do with a topic: one bit per operation code."""
    return authorized_operations(authorize, TOPIC_OPERATIONS, "TOPIC", name)


def group_operations(authorize: Authorize, group_id: str) -> int:
    """Return what the client may do with a group."""
    return authorized_operations(authorize, GROUP_OPERATIONS, "GROUP", group_id)


def cluster_operations(authorize: Authorize) -> int:
    """Return what the client may do with the cluster; 0 if it may not DESCRIBE it."""
    if not authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return 0
    return authorized_operations(authorize, CLUSTER_OPERATIONS, "CLUSTER", CLUSTER_NAME)
