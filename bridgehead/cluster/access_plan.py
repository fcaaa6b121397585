"""The users, ACLs and certificates to create in a new cluster, as values without pydantic.

The command sends them to the supervisor, which imports neither pydantic nor YAML.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

# On an SSL listener, a client with the certificate CN=NAME is User:NAME, without a password.
_MAPPING_RULES: Final = "RULE:^CN=([^,]*)$/$1/,DEFAULT"


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedUser:
    """A user and the password for the SCRAM credentials."""

    name: str
    password: str = dataclasses.field(repr=False)
    mechanisms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedAcl:
    """One ACL, with Kafka's numeric codes."""

    principal: str
    host: str
    operation: int
    permission: int
    resource_type: int
    resource_name: str
    pattern_type: int


@dataclasses.dataclass(frozen=True, slots=True)
class AccessPlan:
    """The users and ACLs to create once the cluster serves.

    `certificates` are the names of the users who get a certificate.
    """

    users: tuple[PlannedUser, ...] = ()
    acls: tuple[PlannedAcl, ...] = ()
    principal: str = "User:ANONYMOUS"  # of the requests that create users and ACLs
    certificates: tuple[str, ...] | None = None  # None: no certificates are generated

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> AccessPlan:
        """Return the plan that `dataclasses.asdict` turned into `document`."""
        certificates = document.get("certificates")
        return AccessPlan(
            tuple(
                PlannedUser(user["name"], user["password"], tuple(user["mechanisms"]))
                for user in document.get("users", ())
            ),
            tuple(PlannedAcl(**acl) for acl in document.get("acls", ())),
            document.get("principal", "User:ANONYMOUS"),
            None if certificates is None else tuple(certificates),
        )


def certificate_properties(brokers: str, authority: str) -> dict[str, str]:
    """Return the properties that refer to the generated certificates."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": brokers,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
        "ssl.principal.mapping.rules": _MAPPING_RULES,
    }


def certificate_hosts(properties: Mapping[str, str]) -> list[str]:
    """Return the addresses that the brokers' certificate must cover."""
    hosts = ["127.0.0.1", "::1", "localhost"]
    for name in ("listeners", "advertised.listeners"):
        for part in properties.get(name, "").split(","):
            host = part.strip().partition("://")[2].rpartition(":")[0].strip("[]")
            if host and host not in ("0.0.0.0", "::"):  # noqa: S104 - never bound
                hosts.append(host)
    return list(dict.fromkeys(hosts))
