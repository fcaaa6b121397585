"""A row of the authorization matrix: a request, the right it needs, and the expected results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.authorizer import Operation, ResourceType

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TXN_DENIED, USER_DENIED = 29, 30, 31, 53, 65
TOKENS_NOT_ALLOWED: Final = 64
DENIALS: Final = frozenset({29, 30, 31, 53, 65, 64})
NOT_DENIED: Final = "not denied"

Observed = Any


def codes(response: Any, _name: str) -> Observed:
    """Return every error code in order. A code that is not a denial is replaced by NOT_DENIED."""
    return [code if code in DENIALS else NOT_DENIED for code in _codes(response)]


def _codes(value: Any) -> list[int]:
    result: list[int] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str) and key.lower() == "errorcode":
            result.append(inner)
        elif isinstance(inner, dict | list):
            result += _codes(inner)
    return result


def is_shown(response: Any, name: str) -> Observed:
    """Return True if the response names the resource."""
    return name in json.dumps(response)


@dataclass(frozen=True, slots=True)
class Row:
    """One request, and what `observe` must return for its response.

    It must return `denied` for clients without the right, and `allowed` for clients with the right.
    """

    label: str
    key: int
    version: int
    operation: Operation
    resource_type: ResourceType
    body: Any
    denied: Observed
    allowed: Observed = field(default_factory=lambda: [NOT_DENIED])
    observe: Callable[[Any, str], Observed] = codes
    topic: bool = False  # the test creates the topic first
    special: dict[str, Observed] = field(default_factory=dict)  # results that differ, by persona

    def filled(self, name: str, broker: int) -> Any:
        """Return the body with its placeholders replaced."""
        text = json.dumps(self.body).replace("{name}", name).replace("{broker}", str(broker))
        return json.loads(text)


def on_topic(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    fields: dict[str, Any] = {"denied": [TOPIC_DENIED], "topic": True} | more
    return Row(label, key, version, operation, "TOPIC", body, **fields)


def on_cluster(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    more = {"denied": [CLUSTER_DENIED]} | more
    return Row(label, key, version, operation, "CLUSTER", body, **more)


def on_group(
    label: str, key: int, version: int, operation: Operation, body: Any, **more: Any
) -> Row:
    more = {"denied": [GROUP_DENIED]} | more
    return Row(label, key, version, operation, "GROUP", body, **more)


def configs(kind: int, name: str, key: str, value: str, *, incremental: bool) -> Any:
    config: dict[str, Any] = {"name": key, "value": value}
    if incremental:
        config["configOperation"] = 0
    resource = {"resourceType": kind, "resourceName": name, "configs": [config]}
    return {"resources": [resource], "validateOnly": True}


def acl_filter(name: str) -> dict[str, Any]:
    return {
        "resourceTypeFilter": 3,
        "resourceNameFilter": name,
        "patternTypeFilter": 3,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
