"""Removes what clients have written, so that a cluster is as empty as after its start.

Topics, dynamic broker configs, client quotas, SCRAM users and ACLs are read and removed through the
cluster's own APIs; `initial_access` creates the planned users and ACLs again.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bridgehead.cluster.access_plan import PlannedAcl
from bridgehead.cluster.control_socket import ControlError
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.initial_access import (
    ANY_ACL,
    MECHANISMS,
    CommandedNode,
    apply_access,
    check,
    read_acls,
    request,
)
from bridgehead.cluster.running_cluster import RunningCluster, wait_until
from bridgehead.kafka_wire.api_key import ApiKey

_METADATA: Final = (ApiKey.METADATA, 1)
_DELETE_TOPICS: Final = (ApiKey.DELETE_TOPICS, 1)
_DELETE_ACLS: Final = (ApiKey.DELETE_ACLS, 2)
_DESCRIBE_CONFIGS: Final = (ApiKey.DESCRIBE_CONFIGS, 1)
_INCREMENTAL_ALTER_CONFIGS: Final = (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
_DESCRIBE_CLIENT_QUOTAS: Final = (ApiKey.DESCRIBE_CLIENT_QUOTAS, 1)
_ALTER_CLIENT_QUOTAS: Final = (ApiKey.ALTER_CLIENT_QUOTAS, 1)
_DESCRIBE_USERS: Final = (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0)
_ALTER_USERS: Final = (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)
_BROKER: Final = 4  # resource type
_DYNAMIC: Final = (2, 3)  # config sources: of one broker, of all brokers
_DELETE: Final = 1  # config operation
_UNKNOWN_TOPIC: Final = 3
_DELETION_MS: Final = 30_000
_TIMEOUT_S: Final = 30.0
# With these properties there may be tokens, which only their owners and renewers can expire.
_TOKENS: Final = ("delegation.token.secret.key", "delegation.token.master.key")


@dataclasses.dataclass(frozen=True, slots=True)
class _Contents:
    """The metadata that one broker returns."""

    topics: frozenset[str]
    configs: frozenset[tuple[str, str]]
    """Pairs of a resource name ("" for all brokers) and a config name."""
    quotas: tuple[Mapping[str, Any], ...]
    salts: Mapping[str, Mapping[str, str]]
    """The salts by SCRAM user and mechanism. A new password has a new salt."""
    acls: frozenset[PlannedAcl]


async def reset(cluster: RunningCluster) -> None:
    """Remove what clients have written; return when no broker knows it any more.

    Every broker must run and know the active controller.

    Raises:
        ClusterError: the cluster rejects a removal, or a change cannot be undone.
    """
    settings = cluster.settings
    if cluster.was_upgraded:
        raise ClusterError("An upgrade cannot be undone: start a new cluster.")
    every = (settings.properties, *settings.node_properties.values())
    if any(properties.get(name) for properties in every for name in _TOKENS):
        raise ClusterError("Delegation tokens cannot be removed: start a new cluster.")
    controller = await cluster.active_controller()
    if controller is None:
        raise ClusterError("There is no active controller: heal the cluster first.")
    if controller.get("is_kraft"):
        raise ClusterError("A KRaft controller owns the metadata: delete topics and configs there.")
    nodes, active = list(cluster.nodes.values()), cluster.nodes[int(controller["id"])]
    try:
        await _reset(cluster, nodes, active)
    except ControlError as error:
        raise ClusterError(f"The metadata could not be removed: {error}") from error


async def _reset(
    cluster: RunningCluster, nodes: Sequence[CommandedNode], active: CommandedNode
) -> None:
    plan = cluster.settings.access
    has_acls = bool(cluster.settings.properties.get("authorizer.class.name"))

    async def contents_now() -> list[_Contents]:
        return await asyncio.gather(
            *(_contents(any_node, plan.principal, has_acls) for any_node in nodes)
        )

    def initial() -> _Contents:
        empty: frozenset[Any] = frozenset()
        return _Contents(empty, empty, (), cluster.salts, frozenset(plan.acls))

    async def is_initial() -> bool:
        return all(contents == initial() for contents in await contents_now())

    async def late() -> str:
        return f"The brokers still knew removed metadata after {_TIMEOUT_S:.0f} s."

    contents_of_nodes = await contents_now()
    for node, contents in zip(nodes, contents_of_nodes, strict=True):
        await _remove(active, contents, plan.principal)
        await _remove_configs(node, contents, plan.principal)
    for contents in contents_of_nodes:
        if (contents.salts, contents.acls) != (cluster.salts, frozenset(plan.acls)):
            await _remove_access(active, contents, plan.principal)
            cluster.salts = await apply_access(nodes, plan)
            break
    await wait_until(is_initial, _TIMEOUT_S, late)


async def _contents(node: CommandedNode, principal: str, has_acls: bool) -> _Contents:
    metadata = await request(node, _METADATA, {"topics": None}, principal)
    resources = [
        {"resourceType": _BROKER, "resourceName": name, "configurationKeys": None}
        for name in (str(node.id), "")
    ]
    body: dict[str, Any] = {"resources": resources, "includeSynonyms": False}
    configs = (await request(node, _DESCRIBE_CONFIGS, body, principal))["results"]
    check(configs, "description of configs")
    body = {"components": [], "strict": False}
    quotas = await request(node, _DESCRIBE_CLIENT_QUOTAS, body, principal)
    check([quotas], "description of quotas")
    users = await request(node, _DESCRIBE_USERS, {"users": None}, principal)
    check([users], "description of users")
    names = sorted(result["user"] for result in users["results"])
    salts = await node.command({"command": "scram_salts", "users": names})
    return _Contents(
        frozenset(topic["name"] for topic in metadata["topics"]),
        frozenset(
            (described["resourceName"], config["name"])
            for described, source in zip(configs, _DYNAMIC, strict=True)
            for config in described["configs"]
            if config["configSource"] == source
        ),
        tuple(quotas["entries"] or ()),
        salts["salts"],
        frozenset(await read_acls(node, principal) if has_acls else ()),
    )


async def _remove(controller: CommandedNode, contents: _Contents, principal: str) -> None:
    """Remove quotas, then topics: a quota may limit the removal of topics."""
    if contents.quotas:
        entries = [
            {
                "entity": quota["entity"],
                "ops": [
                    {"key": value["key"], "value": 0.0, "remove": True} for value in quota["values"]
                ],
            }
            for quota in contents.quotas
        ]
        body: dict[str, Any] = {"entries": entries, "validateOnly": False}
        response = await request(controller, _ALTER_CLIENT_QUOTAS, body, principal)
        check(response["entries"], "removal of a quota")
    for names in _slices(sorted(contents.topics)):
        body = {"topicNames": names, "timeoutMs": _DELETION_MS}
        response = await request(controller, _DELETE_TOPICS, body, principal)
        results = response["responses"]  # A call for another broker may have deleted some topics.
        check([result for result in results if result["errorCode"] != _UNKNOWN_TOPIC], "deletion")


def _slices(names: list[str]) -> Iterator[list[str]]:
    """Yield a thousand names at a time: the node reads commands of up to 1 MiB."""
    for start in range(0, len(names), 1_000):
        yield names[start : start + 1_000]


async def _remove_configs(node: CommandedNode, contents: _Contents, principal: str) -> None:
    """Remove a broker's configs through that broker: any other broker rejects the request."""
    resources = [
        {
            "resourceType": _BROKER,
            "resourceName": resource,
            "configs": [
                {"name": name, "configOperation": _DELETE, "value": None}
                for owner, name in sorted(contents.configs)
                if owner == resource
            ],
        }
        for resource in sorted({owner for owner, _ in contents.configs})
    ]
    if resources:
        body = {"resources": resources, "validateOnly": False}
        response = await request(node, _INCREMENTAL_ALTER_CONFIGS, body, principal)
        check(response["responses"], "removal of a config")


async def _remove_access(controller: CommandedNode, contents: _Contents, principal: str) -> None:
    deletions = [
        {"name": name, "mechanism": MECHANISMS[mechanism][0]}
        for name, salts in sorted(contents.salts.items())
        for mechanism in sorted(salts)
    ]
    if deletions:
        body: dict[str, Any] = {"deletions": deletions, "upsertions": []}
        response = await request(controller, _ALTER_USERS, body, principal)
        check(response["results"], "removal of user")
    if contents.acls:
        response = await request(controller, _DELETE_ACLS, {"filters": [ANY_ACL]}, principal)
        check(response["filterResults"], "removal of ACLs")
