"""The sections `listeners:`, `users:` and `acls:` of a cluster's file.

`merge_into` translates them into Kafka's properties. `access` returns what must be created: the
certificates before the start, SCRAM passwords and ACLs once the cluster serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.cluster.access_plan import AccessPlan, PlannedAcl, PlannedUser
from bridgehead.cluster.broker_certificates import INTER_BROKER_USER
from bridgehead.cluster.errors import ClusterError

_PACKAGE: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
_PASSWORD_MECHANISMS: Final[tuple[Mechanism, ...]] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _protocol_alone(value: object) -> object:
    return {"protocol": value} if isinstance(value, str) else value


def _user_name(name: str) -> str:
    """Accept the names that mean the same user in every property and protocol."""
    if not name or name != name.strip() or not name.isprintable():
        raise ValueError(
            "a user's name is not empty, has no control characters, and does not begin or end "
            "with white space"
        )
    return name


def _password_alone(value: object) -> object:
    return {"password": value} if isinstance(value, str) else value


class ListenerSection(BaseModel):
    """An entry of `listeners:`; its key is the name. A plain string is the protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    protocol: Protocol
    host: str = "127.0.0.1"
    mechanisms: list[Mechanism] = list(_PASSWORD_MECHANISMS)
    client_auth: Literal["none", "requested", "required"] = "none"


class UserSection(BaseModel):
    """An entry of `users:`; its key is the name. A plain string is the password."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    password: SecretStr | None = None
    mechanisms: list[Mechanism] = list(_PASSWORD_MECHANISMS)
    super: bool = False


class AclSection(BaseModel):
    """An entry of `acls:`. Examples of `resource`: `topic:orders`, `cluster`, `topic:*`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    principal: Annotated[str, Field(pattern=r"^[^:]+:.+$")]
    operations: list[str]
    resource: str
    pattern: Literal["literal", "prefixed"] = "literal"
    permission: Literal["allow", "deny"] = "allow"
    host: str = "*"


Listener = Annotated[ListenerSection, BeforeValidator(_protocol_alone)]
UserName = Annotated[str, AfterValidator(_user_name)]
User = Annotated[UserSection, BeforeValidator(_password_alone)]


class SecuritySections(BaseModel):
    """The three sections of a cluster's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    listeners: dict[str, Listener] = Field(default_factory=dict)
    users: dict[UserName, User] = Field(default_factory=dict)
    acls: list[AclSection] | None = None

    def merge_into(self, user_properties: Mapping[str, str]) -> dict[str, str]:
        """Return `given` and the properties of the sections; `given` takes precedence.

        `super.users` has the users of both.

        Raises:
            ClusterError: the sections and `given` contradict each other.
        """
        if self.listeners and "listeners" in user_properties:
            raise ClusterError(
                "`listeners` is set twice: as a section and in `properties`. Remove one."
            )
        merged: dict[str, str] = {}
        if self.listeners:
            merged["listeners"] = ",".join(
                f"{name}://{listener.host}:0" for name, listener in self.listeners.items()
            )
            merged["listener.security.protocol.map"] = ",".join(
                f"{name}:{listener.protocol}" for name, listener in self.listeners.items()
            )
        for name, listener in self.listeners.items():
            merged |= self._listener_properties(name, listener)
        supers = [_super_user(name) for name, user in self.users.items() if user.super]
        if supers or self.acls is not None:
            merged["authorizer.class.name"] = AUTHORIZER
            listed = user_properties.get("super.users", "").strip()
            super_users = [*supers, *([listed] if listed else []), self._brokers(user_properties)]
            user_properties = {
                **user_properties,
                "super.users": ";".join(dict.fromkeys(super_users)),
            }
        return {**merged, **user_properties}

    def _brokers(self, user_properties: Mapping[str, str]) -> str:
        """Return the brokers' principal, which must be allowed to forward."""
        name = user_properties.get(INTER_BROKER_USER, "broker")
        if name in self.users and not self.users[name].super:
            raise ClusterError(
                f"User {name!r} has the name of the brokers' principal, User:{name}: set another "
                f"name in {INTER_BROKER_USER}."
            )
        return _super_user(name)

    def _listener_properties(self, name: str, section: ListenerSection) -> dict[str, str]:
        prefix, section_properties = f"listener.name.{name.lower()}", {}
        if section.protocol.startswith("SASL"):
            section_properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(section.mechanisms)
            for mechanism in section.mechanisms:
                options = self._passwords() if mechanism == "PLAIN" else {}
                section_properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = format_jaas(
                    _MODULES[mechanism], options
                )
        if section.protocol.endswith("SSL"):
            section_properties[f"{prefix}.ssl.client.auth"] = section.client_auth
        return section_properties

    def _passwords(self) -> dict[str, str]:
        return {
            f"user_{name}": user.password.get_secret_value()
            for name, user in self.users.items()
            if user.password is not None and "PLAIN" in user.mechanisms
        }

    def access(self, properties: Mapping[str, str]) -> AccessPlan:
        """Return the users, ACLs and certificates to create, given the cluster's `properties`.

        Raises:
            ClusterError: an ACL is malformed, or no super user can create it.
        """
        users = tuple(
            PlannedUser(
                name,
                user.password.get_secret_value(),
                tuple(mechanism for mechanism in user.mechanisms if mechanism.startswith("SCRAM")),
            )
            for name, user in self.users.items()
            if user.password is not None
        )
        acls = tuple(_acl(acl, word) for acl in self.acls or () for word in acl.operations)
        supers = [user.strip() for user in properties.get("super.users", "").split(";")]
        # The brokers' principal does not count: a user must be able to manage the ACLs.
        people = [user for user in supers if user not in ("", self._brokers(properties))]
        principal = people[0] if people else "User:ANONYMOUS"
        needs_right = bool(acls or any(user.mechanisms for user in users))
        if (
            needs_right
            and properties.get("authorizer.class.name")
            and principal == "User:ANONYMOUS"
        ):
            raise ClusterError(
                "No super user can create users and ACLs: add `super: true` to one of `users:`, or "
                "set `super.users`."
            )
        return AccessPlan(users, acls, principal, self._certificates(properties))

    def _certificates(self, properties: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return the users who get a certificate; None without TLS, or if a key store is given."""
        tls = [
            listener for listener in self.listeners.values() if listener.protocol.endswith("SSL")
        ]
        if not tls or any(name.startswith("ssl.keystore.") for name in properties):
            return None
        wanted = any(listener.client_auth != "none" for listener in tls)
        return tuple(self.users) if wanted else ()


def format_jaas(module: str, options: Mapping[str, str]) -> str:
    """Return a value for Kafka's `sasl.jaas.config`."""
    parts = [module, "required"]
    for key, value in options.items():
        parts.append(f"{key if _WORD.fullmatch(key) else _quoted(key)}={_quoted(value)}")
    return " ".join(parts) + ";"


_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _super_user(name: str) -> str:
    """Return the principal of a user as an entry of `super.users`. Raises ClusterError."""
    if ";" in name:
        raise ClusterError(
            f"User {name!r} cannot be a super user: `super.users` separates its entries with "
            "semicolons. Choose another name."
        )
    return f"User:{name}"


# Kafka's codes.
_RESOURCES: Final = {name: code for code, name in enumerate(get_args(ResourceType), 2)}
_OPERATIONS: Final = {name: code for code, name in enumerate(("ALL", *get_args(Operation)), 2)}
_PERMISSIONS: Final = {"deny": 2, "allow": 3}
_PATTERNS: Final = {"literal": 3, "prefixed": 4}
_CLUSTER: Final = "kafka-cluster"


def _acl(section: AclSection, operation: str) -> PlannedAcl:
    kind, _, name = section.resource.partition(":")
    resource_type = _number(_RESOURCES, kind, "resource")
    if kind.upper() == "CLUSTER":
        name = _CLUSTER
    if not name:
        raise ClusterError(
            f"`acls`: {section.resource!r} names no resource: write, for example, topic:orders."
        )
    return PlannedAcl(
        section.principal,
        section.host,
        _number(_OPERATIONS, operation, "operation"),
        _PERMISSIONS[section.permission],
        resource_type,
        name,
        _PATTERNS[section.pattern],
    )


def _number(numbers: Mapping[str, int], word: str, kind: str) -> int:
    number = numbers.get(word.upper().replace("-", "_"))
    if number is None:
        choices: Iterable[str] = (index.lower() for index in numbers)
        raise ClusterError(
            f"`acls`: {word!r} is not a valid {kind}: use one of {', '.join(choices)}."
        )
    return number
