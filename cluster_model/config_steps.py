"""Which znodes below /config one config record is made of.

Topics and brokers keep their znode when it is emptied. A user, client or ip loses it, unless there
are clients below it; the last client of a user takes the `clients` znode with it, and the user's
own znode where that is empty (kafka-semantics 2.10). One function says so, and both memory
(`MetadataImage.replay`) and ZooKeeper (`controller.store.plan`) follow it.
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
    """What is there, as far as it is asked: a map, or one that is being changed."""

    def __contains__(self, key: Key, /) -> bool: ...
    def __getitem__(self, key: Key, /) -> Value: ...


class StepKind(Enum):
    """What happens to one znode."""

    CREATE = auto()
    SET = auto()
    DELETE = auto()


class ConfigStep(NamedTuple):
    """One znode changes. `configs` is None for a znode without data, and for one that goes."""

    kind: StepKind
    resource: ConfigResource
    configs: Mapping[str, str] | None = None


def user_and_client(resource: ConfigResource) -> tuple[str, str | None]:
    """Return the user of an entity below users, and the client where it names one."""
    user, below, client = resource.entity_name.partition(f"/{_CLIENTS}/")
    return user, client if below else None


def user_of_clients(resource: ConfigResource) -> str | None:
    """Return the user whose `clients` znode this is; None for every other resource."""
    user, slash, rest = resource.entity_name.partition("/")
    return user if resource.entity_type == "users" and slash and rest == _CLIENTS else None


def config_steps(
    resource: ConfigResource,
    configs: Mapping[str, str],
    stored: Known[ConfigResource, Mapping[str, str]],
    user_clients: Known[str, frozenset[str]],
) -> list[ConfigStep]:
    """Return how the znode of `resource` comes to hold `configs`, in the order of the writes.

    `stored` are the config znodes that are there, those without data included; `user_clients` are
    the clients below each user that has a `clients` znode.
    """
    there = resource in stored
    is_below_user = resource.entity_type == "users"
    user, client = user_and_client(resource) if is_below_user else ("", None)
    has_children = is_below_user and client is None and user in user_clients
    if configs or has_children or resource.entity_type in KEPT_WHEN_EMPTY:
        if there:
            return [ConfigStep(StepKind.SET, resource, configs)]
        parents = [] if client is None else _missing_parents(user, stored, user_clients)
        return [*parents, ConfigStep(StepKind.CREATE, resource, configs)]
    if not there:
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
