"""The znode changes below /config that a config record causes.

A topic or broker without configs keeps its znode. A user, client or ip without configs loses its
znode, unless there are clients below it. Removing the last client of a user also removes the user's
`clients` znode, and the user's own znode if it has no configs.
See docs/kafka/znodes.md#config-znodes.
`MetadataImage.replay` and `controller.store.plan` both use these changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeVar

from cluster_model.records import ConfigResource

Key = TypeVar("Key", contravariant=True)
Value = TypeVar("Value", covariant=True)

KEPT_WHEN_EMPTY: Final = ("topics", "brokers")
_CLIENTS: Final = "clients"


class Known(Protocol[Key, Value]):
    """The existing entries: an immutable map, or a mutable copy of it."""

    def __contains__(self, key: Key, /) -> bool: ...
    def __getitem__(self, key: Key, /) -> Value: ...


class StepKind(Enum):
    """The change of one znode."""

    CREATE = auto()
    SET = auto()
    DELETE = auto()


class ConfigStep(NamedTuple):
    """One change. `configs` is None for a deletion and for a znode without data."""

    kind: StepKind
    resource: ConfigResource
    configs: Mapping[str, str] | None = None


def user_and_client(resource: ConfigResource) -> tuple[str, str | None]:
    """Return the user of an entity below /config/users, and the client if the entity has one."""
    user, below, client = resource.entity_name.partition(f"/{_CLIENTS}/")
    return user, client if below else None


def user_of_clients(resource: ConfigResource) -> str | None:
    """Return the user that owns this `clients` znode; None for other resources."""
    user, slash, rest = resource.entity_name.partition("/")
    return user if resource.entity_type == "users" and slash and rest == _CLIENTS else None


def config_steps(
    resource: ConfigResource,
    configs: Mapping[str, str],
    stored: Known[ConfigResource, Mapping[str, str]],
    user_clients: Known[str, frozenset[str]],
) -> list[ConfigStep]:
    """Return the changes that give `resource` these configs, in order.

    `stored` has all existing config znodes, including those without data; `user_clients` has the
    clients of each user with a `clients` znode.
    """
    exists = resource in stored
    is_below_user = resource.entity_type == "users"
    user, client = user_and_client(resource) if is_below_user else ("", None)
    has_children = is_below_user and client is None and user in user_clients
    if configs or has_children or resource.entity_type in KEPT_WHEN_EMPTY:
        if exists:
            return [ConfigStep(StepKind.SET, resource, configs)]
        parents = [] if client is None else _missing_parents(user, stored, user_clients)
        return [*parents, ConfigStep(StepKind.CREATE, resource, configs)]
    if not exists:
        return []
    steps = [ConfigStep(StepKind.DELETE, resource)]
    if client is not None and user in user_clients and user_clients[user] == frozenset((client,)):
        steps.append(ConfigStep(StepKind.DELETE, _clients_of(user)))
        owner = ConfigResource("users", user)
        if owner in stored and not stored[owner]:
            steps.append(ConfigStep(StepKind.DELETE, owner))
    return steps


def _missing_parents(
    user: str,
    stored: Known[ConfigResource, Mapping[str, str]],
    user_clients: Known[str, frozenset[str]],
) -> list[ConfigStep]:
    owner = ConfigResource("users", user)
    steps = []
    if owner not in stored:
        steps.append(ConfigStep(StepKind.CREATE, owner))
    if user not in user_clients:
        steps.append(ConfigStep(StepKind.CREATE, _clients_of(user)))
    return steps


def _clients_of(user: str) -> ConfigResource:
    return ConfigResource("users", f"{user}/{_CLIENTS}")
