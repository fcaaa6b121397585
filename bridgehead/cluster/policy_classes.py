"""Turns policy classes into properties, and finds the folders from which nodes import them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster.errors import ClusterError
from bridgehead.policy import AlterConfigPolicy, CreateTopicPolicy, TopicManagementPolicy

_PROPERTIES: Final[dict[type[Any], str]] = {
    TopicManagementPolicy: "topic.management.policy.class.name",
    CreateTopicPolicy: "create.topic.policy.class.name",
    AlterConfigPolicy: "alter.config.policy.class.name",
}


def policy_properties(policies: Sequence[type[Any]]) -> tuple[dict[str, str], list[Path]]:
    """Return the properties that name the policies, and the folders for PYTHONPATH.

    Raises:
        ClusterError: a policy implements no interface of bridgehead.policy, or is not importable.
    """
    properties: dict[str, str] = {}
    folders: list[Path] = []
    for policy in policies:
        names = [name for base, name in _PROPERTIES.items() if _implements(policy, base)]
        if not names:
            raise ClusterError(
                f"The policy {policy!r} is not a subclass of TopicManagementPolicy, "
                "CreateTopicPolicy or AlterConfigPolicy of bridgehead.policy."
            )
        if "." in policy.__qualname__ or policy.__module__ == "__main__":
            raise ClusterError(
                f"The policy {policy.__qualname__} must be at the top level of a module that can "
                "be imported: the brokers are other processes."
            )
        properties |= dict.fromkeys(names, f"{policy.__module__}.{policy.__qualname__}")
        file = Path(inspect.getfile(policy)).resolve()
        levels = policy.__module__.count(".") + (file.name == "__init__.py")
        folders.append(file.parents[levels])
    return properties, folders


def _implements(policy: object, interface: type[Any]) -> bool:
    return isinstance(policy, type) and issubclass(policy, interface)
