"""The bit fields that tell a client what it may do with a resource (kafka-semantics 3.16, 6.3)."""

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
    """Return the operations on a topic, one bit per code."""
    return authorized_operations(authorize, TOPIC_OPERATIONS, "TOPIC", name)


def group_operations(authorize: Authorize, group_id: str) -> int:
    """Return the operations on a group."""
    return authorized_operations(authorize, GROUP_OPERATIONS, "GROUP", group_id)


def cluster_operations(authorize: Authorize) -> int:
    """Return the operations on the cluster; 0 for who may not describe it."""
    if not authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return 0
    return authorized_operations(authorize, CLUSTER_OPERATIONS, "CLUSTER", CLUSTER_NAME)
