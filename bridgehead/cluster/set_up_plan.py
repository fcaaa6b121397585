"""What is to be done for a cluster's users, ACLs and certificates: values, without pydantic.

They travel from the command to the supervisor, which imports neither pydantic nor YAML.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

# A user's certificate says CN=NAME: the principal is then User:NAME, as with a password.
_MAPPING_RULES: Final = "RULE:^CN=([^,]*)$/$1/,DEFAULT"


@dataclasses.dataclass(frozen=True, slots=True)
class UserSetUp:
    """A user and the password that SCRAM credentials are made of."""

    name: str
    password: str = dataclasses.field(repr=False)
    mechanisms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class AclSetUp:
    """One ACL, in Kafka's numbers."""

    principal: str
    host: str
    operation: int
    permission: int
    resource_type: int
    resource_name: str
    pattern_type: int


@dataclasses.dataclass(frozen=True, slots=True)
class SetUp:
    """What is done once the cluster serves. `certificates`: for whom some are generated."""

    users: tuple[UserSetUp, ...] = ()
    acls: tuple[AclSetUp, ...] = ()
    asker: str = "User:ANONYMOUS"  # in whose name
    certificates: tuple[str, ...] | None = None  # None: no listener needs any

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> SetUp:
        """What `dataclasses.asdict` made a dictionary of."""
        certificates = document.get("certificates")
        return SetUp(
            tuple(
                UserSetUp(each["name"], each["password"], tuple(each["mechanisms"]))
                for each in document.get("users", ())
            ),
            tuple(AclSetUp(**each) for each in document.get("acls", ())),
            document.get("asker", "User:ANONYMOUS"),
            None if certificates is None else tuple(certificates),
        )


def certificate_properties(brokers: str, authority: str) -> dict[str, str]:
    """The properties that name generated certificates."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": brokers,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
        "ssl.principal.mapping.rules": _MAPPING_RULES,
    }


def certificate_hosts(properties: Mapping[str, str]) -> list[str]:
    """The addresses for which the brokers' certificate must be good."""
    hosts = ["127.0.0.1", "::1", "localhost"]
    for name in ("listeners", "advertised.listeners"):
        for part in properties.get(name, "").split(","):
            host = part.strip().partition("://")[2].rpartition(":")[0].strip("[]")
            if host and host not in ("0.0.0.0", "::"):  # noqa: S104 - never bound
                hosts.append(host)
    return list(dict.fromkeys(hosts))
