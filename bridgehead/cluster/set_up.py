"""Sets up users and ACLs in a cluster that has just begun to serve, through its own APIs.

Requests go over a node's control socket, which only the owner of the data directory can open, in
the name of a super user: no password has to be there before the first one is. It is done when every
broker knows it, so that whoever is told that the cluster is ready can log in anywhere.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from bridgehead.cluster.control_socket import ControlError
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.set_up_plan import (
    AclSetUp,
    SetUp,
    UserSetUp,
    certificate_hosts,
    certificate_properties,
)
from bridgehead.cluster.settings import ClusterSettings

_CREATE_ACLS: Final = (30, 3)
_DESCRIBE_ACLS: Final = (29, 3)
_ALTER_USER_SCRAM_CREDENTIALS: Final = (51, 0)
_ANY: Final = 1
_MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_ITERATIONS: Final = 4096
_PATIENCE_S: Final = 30.0
_POLL_S: Final = 0.02


class SetUpNode(Protocol):
    """A node that is asked: a child process here, or one in another container."""

    id: int

    @property
    def log(self) -> Path:
        """Where to look when it does not do what it is told."""
        ...

    async def command(self, message: dict[str, Any], *, timeout_s: float = 10.0) -> dict[str, Any]:
        """Ask it something. Raises ControlError."""
        ...


def with_certificates(settings: ClusterSettings, folder: Path) -> ClusterSettings:
    """The settings, with the certificates that they ask for made in `folder`.

    Raises:
        ClusterError: what is there already cannot be used. OSError: the folder cannot be written.
    """
    names = settings.set_up.certificates
    if names is None:
        return settings
    from bridgehead.cluster.certificates import Authority  # cryptography: not for everybody

    try:
        authority = Authority(folder)
        brokers = authority.issue_brokers(certificate_hosts(settings.properties))
        for name in names:
            authority.issue_user(name)
    except ValueError as error:
        raise ClusterError(
            f"{folder} holds certificates that cannot be used: remove it, and new ones are made."
        ) from error
    made = certificate_properties(str(brokers), str(authority.certificate_file))
    return dataclasses.replace(settings, properties={**made, **settings.properties})


async def set_up(nodes: Sequence[SetUpNode], wanted: SetUp) -> None:
    """Do what is wanted; return when every node knows of it.

    Raises:
        ClusterError: the cluster refused, and why.
    """
    if not wanted.acls and not any(user.mechanisms for user in wanted.users):
        return
    try:
        salts = await _set_passwords(nodes[0], wanted)
        await _create_acls(nodes[0], wanted)
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        for node in nodes:
            while not await _knows(node, wanted, salts):
                if asyncio.get_running_loop().time() > deadline:
                    raise ClusterError(
                        f"Broker {node.id} did not hear of all users and ACLs within "
                        f"{_PATIENCE_S:.0f} s: see {node.log}."
                    )
                await asyncio.sleep(_POLL_S)
    except ControlError as refused:
        raise ClusterError(f"Users and ACLs could not be set up: {refused}") from refused


async def _set_passwords(node: SetUpNode, wanted: SetUp) -> Mapping[str, Mapping[str, str]]:
    """Return the new salts: user, mechanism, base64."""
    upsertions = [
        _upsertion(user, mechanism) for user in wanted.users for mechanism in user.mechanisms
    ]
    if not upsertions:
        return {}
    body = {"deletions": [], "upsertions": upsertions}
    answer = await _ask(node, _ALTER_USER_SCRAM_CREDENTIALS, body, wanted.asker)
    _check(answer["results"], "user")
    names = {number: name for name, (number, _) in _MECHANISMS.items()}
    salts: dict[str, dict[str, str]] = {}
    for each in upsertions:
        salts.setdefault(each["name"], {})[names[each["mechanism"]]] = each["salt"]
    return salts


def _upsertion(user: UserSetUp, mechanism: str) -> dict[str, Any]:
    number, hash_name = _MECHANISMS[mechanism]
    salt = secrets.token_bytes(24)
    salted = hashlib.pbkdf2_hmac(hash_name, user.password.encode(), salt, _ITERATIONS)
    return {
        "name": user.name,
        "mechanism": number,
        "iterations": _ITERATIONS,
        "salt": _text(salt),
        "saltedPassword": _text(salted),
    }


async def _create_acls(node: SetUpNode, wanted: SetUp) -> None:
    if not wanted.acls:
        return
    body = {"creations": [_creation(acl) for acl in wanted.acls]}
    answer = await _ask(node, _CREATE_ACLS, body, wanted.asker)
    _check(answer["results"], "ACL")


def _creation(acl: AclSetUp) -> dict[str, Any]:
    return {
        "resourceType": acl.resource_type,
        "resourceName": acl.resource_name,
        "resourcePatternType": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permissionType": acl.permission,
    }


async def _knows(node: SetUpNode, wanted: SetUp, salts: Mapping[str, Mapping[str, str]]) -> bool:
    if salts:
        known = await node.command({"command": "scram_salts", "users": sorted(salts)})
        if known["salts"] != salts:
            return False
    return not wanted.acls or set(wanted.acls) <= await _acls(node, wanted.asker)


async def _acls(node: SetUpNode, asker: str) -> set[AclSetUp]:
    body = {
        "resourceTypeFilter": _ANY,
        "resourceNameFilter": None,
        "patternTypeFilter": _ANY,
        "principalFilter": None,
        "hostFilter": None,
        "operation": _ANY,
        "permissionType": _ANY,
    }
    answer = await _ask(node, _DESCRIBE_ACLS, body, asker)
    _check([answer], "ACL")
    return {
        AclSetUp(
            acl["principal"],
            acl["host"],
            acl["operation"],
            acl["permissionType"],
            resource["resourceType"],
            resource["resourceName"],
            resource["patternType"],
        )
        for resource in answer["resources"]
        for acl in resource["acls"]
    }


async def _ask(
    node: SetUpNode, api: tuple[int, int], body: dict[str, Any], asker: str
) -> dict[str, Any]:
    from bridgehead.kafka_wire import decode_body, encode_body  # most clusters set up nobody

    key, version = api
    answer = await node.command(
        {
            "command": "request",
            "asker": asker,
            "api_key": key,
            "api_version": version,
            "body": _text(encode_body(key, "request", version, body)),
        },
        timeout_s=_PATIENCE_S,
    )
    return decode_body(key, "response", version, base64.b64decode(answer["body"]))


def _check(results: Sequence[Mapping[str, Any]], what: str) -> None:
    for result in results:
        if result["errorCode"]:
            name = f" {result['user']}" if "user" in result else ""
            raise ClusterError(
                f"The cluster refused the {what}{name} of its file with code "
                f"{result['errorCode']}: {result['errorMessage'] or 'it gave no reason'}."
            )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
