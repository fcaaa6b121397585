"""The bit fields that tell a client what it may do with a resource (kafka-semantics 3.16, 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker_proxy.apis.base import ClientRequest

# (operation, resource type, resource name) -> allowed, for the asker of one request.
Authorize = Callable[[str, str, str], bool]
AuthorizeFor = Callable[[ClientRequest], Authorize]

CLUSTER_NAME: Final = "kafka-cluster"
_TOPIC: Final[Mapping[str, int]] = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
}
_GROUP: Final[Mapping[str, int]] = {"READ": 3, "DELETE": 6, "DESCRIBE": 8}
_CLUSTER: Final[Mapping[str, int]] = {
    "CREATE": 5,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}


def allow_everything(operation: str, resource_type: str, resource_name: str) -> bool:
    """What is allowed while no authorizer is configured."""
    return True


def topic_operations(authorize: Authorize, name: str) -> int:
    """Return the operations on a topic, one bit per code."""
    return sum(1 << code for word, code in _TOPIC.items() if authorize(word, "TOPIC", name))


def group_operations(authorize: Authorize, group_id: str) -> int:
    """Return the operations on a group."""
    return sum(1 << code for word, code in _GROUP.items() if authorize(word, "GROUP", group_id))


def cluster_operations(authorize: Authorize) -> int:
    """Return the operations on the cluster; 0 for who may not describe it."""
    if not authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return 0
    return sum(
        1 << code for word, code in _CLUSTER.items() if authorize(word, "CLUSTER", CLUSTER_NAME)
    )
