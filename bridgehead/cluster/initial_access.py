"""Creates users and ACLs in a cluster that has just started, through its own APIs.

The requests use the principal of a super user and are sent to a node's control socket. Only the
owner of the data directory can open that socket, so the requests need no login.
`apply_access` returns when every broker knows all users and ACLs, so that users can log in at every
broker once the cluster is ready.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from bridgehead.cluster.access_plan import (
    AccessPlan,
    PlannedAcl,
    PlannedUser,
    certificate_hosts,
    certificate_properties,
)
from bridgehead.cluster.control_socket import ControlError
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import ClusterSettings
from bridgehead.kafka_wire.api_key import ApiKey

_CREATE_ACLS: Final = (ApiKey.CREATE_ACLS, 3)
_DESCRIBE_ACLS: Final = (ApiKey.DESCRIBE_ACLS, 3)
_ALTER_USER_SCRAM_CREDENTIALS: Final = (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)
_ANY: Final = 1
ANY_ACL: Final[Mapping[str, Any]] = {
    "resourceTypeFilter": _ANY,
    "resourceNameFilter": None,
    "patternTypeFilter": _ANY,
    "principalFilter": None,
    "hostFilter": None,
    "operation": _ANY,
    "permissionType": _ANY,
}
MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_ITERATIONS: Final = 4096
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.02


class CommandedNode(Protocol):
    """A node with a control socket: a child process, or a process in another container."""

    id: int

    @property
    def log(self) -> Path | str:
        """The node's log, for error messages."""
        ...

    async def command(self, message: dict[str, Any], *, timeout_s: float = 10.0) -> dict[str, Any]:
        """Execute a command. Raises ControlError."""
        ...


def with_certificates(
    settings: ClusterSettings, folder: Path, addresses: Sequence[str] = ()
) -> ClusterSettings:
    """Generate the planned certificates in `folder`; return the settings that refer to them.

    The brokers' certificate also covers the hosts of `addresses`, `host[:port]` each.

    Raises:
        ClusterError: existing certificates cannot be used.
        OSError: the folder cannot be written.
    """
    names = settings.access.certificates
    if names is None:
        return settings
    from bridgehead.cluster.certificates import Authority  # imports cryptography, which is slow

    try:
        authority = Authority(folder)
        brokers = authority.issue_brokers(
            [
                *certificate_hosts(settings.properties),
                *(re.sub(r":\d+$", "", address).strip("[]") for address in addresses),
            ]
        )
        for name in names:
            authority.issue_user(name)
    except ValueError as error:
        raise ClusterError(
            f"{folder} contains certificates that cannot be used: remove it to generate new ones."
        ) from error
    security_properties = certificate_properties(str(brokers), str(authority.certificate_file))
    return dataclasses.replace(settings, properties={**security_properties, **settings.properties})


async def apply_access(
    nodes: Sequence[CommandedNode], plan: AccessPlan
) -> Mapping[str, Mapping[str, str]]:
    """Create users and ACLs; return the salts by user and mechanism.

    Returns when every node knows all users and ACLs.

    Raises:
        ClusterError: a user or an ACL was rejected, or did not reach every node in time.
    """
    if not plan.acls and not any(user.mechanisms for user in plan.users):
        return {}
    try:
        salts = await _set_passwords(nodes[0], plan)
        await _create_acls(nodes[0], plan)
        deadline = asyncio.get_running_loop().time() + _TIMEOUT_S
        for node in nodes:
            while not await _knows(node, plan, salts):
                if asyncio.get_running_loop().time() > deadline:
                    raise ClusterError(
                        f"Broker {node.id} did not receive all users and ACLs within "
                        f"{_TIMEOUT_S:.0f} s: see {node.log}."
                    )
                await asyncio.sleep(_POLL_S)
        return salts
    except ControlError as error:
        raise ClusterError(f"Users and ACLs could not be created: {error}") from error


async def _set_passwords(node: CommandedNode, plan: AccessPlan) -> Mapping[str, Mapping[str, str]]:
    """Set the passwords; return the new salts in base64, by user and mechanism."""
    upsertions = [
        _upsertion(user, mechanism) for user in plan.users for mechanism in user.mechanisms
    ]
    if not upsertions:
        return {}
    body = {"deletions": [], "upsertions": upsertions}
    response = await request(node, _ALTER_USER_SCRAM_CREDENTIALS, body, plan.principal)
    check(response["results"], "user")
    names = {number: name for name, (number, _) in MECHANISMS.items()}
    salts: dict[str, dict[str, str]] = {}
    for upsertion in upsertions:
        salts.setdefault(upsertion["name"], {})[names[upsertion["mechanism"]]] = upsertion["salt"]
    return salts


def _upsertion(user: PlannedUser, mechanism: str) -> dict[str, Any]:
    number, hash_name = MECHANISMS[mechanism]
    salt = secrets.token_bytes(24)
    salted = hashlib.pbkdf2_hmac(hash_name, user.password.encode(), salt, _ITERATIONS)
    return {
        "name": user.name,
        "mechanism": number,
        "iterations": _ITERATIONS,
        "salt": _text(salt),
        "saltedPassword": _text(salted),
    }


async def _create_acls(node: CommandedNode, plan: AccessPlan) -> None:
    if not plan.acls:
        return
    body = {"creations": [_creation(acl) for acl in plan.acls]}
    response = await request(node, _CREATE_ACLS, body, plan.principal)
    check(response["results"], "ACL")


def _creation(acl: PlannedAcl) -> dict[str, Any]:
    return {
        "resourceType": acl.resource_type,
        "resourceName": acl.resource_name,
        "resourcePatternType": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permissionType": acl.permission,
    }


async def _knows(
    node: CommandedNode, plan: AccessPlan, salts: Mapping[str, Mapping[str, str]]
) -> bool:
    if salts:
        response = await node.command({"command": "scram_salts", "users": sorted(salts)})
        if response["salts"] != salts:
            return False
    return not plan.acls or set(plan.acls) <= await read_acls(node, plan.principal)


async def read_acls(node: CommandedNode, principal: str) -> set[PlannedAcl]:
    """Return every ACL that a node knows. Raises ClusterError and ControlError."""
    response = await request(node, _DESCRIBE_ACLS, ANY_ACL, principal)
    check([response], "description of ACLs")
    return {
        PlannedAcl(
            acl["principal"],
            acl["host"],
            acl["operation"],
            acl["permissionType"],
            resource["resourceType"],
            resource["resourceName"],
            resource["patternType"],
        )
        for resource in response["resources"]
        for acl in resource["acls"]
    }


async def request(
    node: CommandedNode, api: tuple[int, int], body: Mapping[str, Any], principal: str
) -> dict[str, Any]:
    """Make a node execute a request for `principal`; return the response. Raises ControlError."""
    # Imported here, because most clusters create no users.
    from bridgehead.kafka_wire import decode_body, encode_body

    key, version = api
    response = await node.command(
        {
            "command": "request",
            "principal": principal,
            "api_key": key,
            "api_version": version,
            "body": _text(encode_body(key, "request", version, dict(body))),
        },
        timeout_s=_TIMEOUT_S,
    )
    return decode_body(key, "response", version, base64.b64decode(response["body"]))


def check(results: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Raise ClusterError for the first result with an error code; `kind` is what was rejected."""
    for result in results:
        if result["errorCode"]:
            name = f" {result['user']}" if "user" in result else ""
            raise ClusterError(
                f"The cluster rejected the {kind}{name} with error "
                f"{result['errorCode']}: {result.get('errorMessage') or 'no message'}."
            )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
