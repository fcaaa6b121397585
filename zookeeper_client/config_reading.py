"""Reads configs from ZooKeeper, for controllers and brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from cluster_model.records import ConfigResource
from cluster_model.znodes.layout import ConfigZnode, ZnodeContentError
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData


class StoredConfigs(NamedTuple):
    """The stored configs. `invalid` has an error for each invalid znode.

    As in Kafka, an invalid znode counts as empty.
    """

    configs: dict[ConfigResource, dict[str, str]]
    versions: dict[ConfigResource, int]  # the version of each znode
    invalid: tuple[str, ...]
    # The clients below each user that has a `clients` znode, which may be empty.
    clients: dict[str, frozenset[str]]


async def read_configs(read: ReadMany, entity_types: Sequence[str]) -> StoredConfigs:
    """Return all configs of these entity types. Type `users` includes the clients of each user.

    Raises:
        ConnectionLostError: the connection broke.
    """
    names = await _children(read, [f"/config/{entity_type}" for entity_type in entity_types])
    resources = [
        ConfigResource(entity_type, name)
        for entity_type, entities in zip(entity_types, names, strict=True)
        for name in sorted(entities or ())
    ]
    users = [r for r in resources if r.entity_type == "users"]
    below = await _children(read, [f"{ConfigZnode.path(user)}/clients" for user in users])
    clients = {
        user.entity_name: frozenset(names)
        for user, names in zip(users, below, strict=True)
        if names is not None
    }
    resources += [
        ConfigResource("users", f"{user}/clients/{name}")
        for user, names in clients.items()
        for name in sorted(names)
    ]
    return (await read_some_configs(read, resources))._replace(clients=clients)


async def read_some_configs(read: ReadMany, resources: Sequence[ConfigResource]) -> StoredConfigs:
    """Return the configs of those resources that exist. Raises ConnectionLostError."""
    configs: dict[ConfigResource, dict[str, str]] = {}
    versions: dict[ConfigResource, int] = {}
    invalid = []
    paths = [ConfigZnode.path(resource) for resource in resources]
    znodes = await read([ReadData(path) for path in paths])
    for resource, path, znode in zip(resources, paths, znodes, strict=True):
        if isinstance(znode, ZnodeData):
            versions[resource] = znode.version
            try:
                configs[resource] = ConfigZnode.decode(path, znode.data)
            except ZnodeContentError as wrong:
                configs[resource] = {}
                invalid.append(str(wrong))
    return StoredConfigs(configs, versions, tuple(invalid), {})


async def _children(read: ReadMany, paths: Sequence[str]) -> list[list[str] | None]:
    return cast(list[list[str] | None], await read([ReadChildren(path) for path in paths]))
