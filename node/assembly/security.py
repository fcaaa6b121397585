"""Builds a node's security: TLS, principals, logins and access to ZooKeeper."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from broker_proxy.authentication.listener_security import (
    LoginRequirements,
    Sources,
    login_requirements,
)
from broker_proxy.authentication.principals import DEFAULT_BUILDER, load_builder
from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.authentication.user_credentials import UserCredentialCache
from broker_proxy.metadata.learned_acls import LearnedAcls
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.acls.bindings import AclSet
from cluster_model.znodes.access import ZooKeeperAccess
from envelope.channel_security import ChannelSecurity, ChannelSecurityError, load_security
from envelope.principal_serde import (
    CustomPrincipalSerde,
    DefaultPrincipalSerde,
    FakePrincipalSerde,
    PrincipalCodec,
    PrincipalSerde,
)
from node.assembly.authorization import Authorization
from node.assembly.current_state import ActiveImage
from node.assembly.instruments import Instruments
from node.assembly.signals import Signals
from node.config import NodeConfig, NodeConfigError
from node.zookeeper_tls import build_zookeeper_tls

BUILDER_CLASS: Final = "principal.builder.class"
_SERDE_METHODS: Final = ("serialize", "deserialize")


class SessionAccess(NamedTuple):
    """The ZooKeeper access of a node's sessions. Sessions for direct writes use `controller`."""

    controller: ZooKeeperAccess
    broker: ZooKeeperAccess


@dataclass(frozen=True, slots=True)
class Security:
    """Users, tokens and ACLs of the cluster, and the node's own credentials."""

    users: UserCredentialCache
    tokens: TokenCache
    learned_acls: LearnedAcls
    authorization: Authorization
    serde: PrincipalSerde
    channel: ChannelSecurity | None  # None: plain text
    zookeeper: SessionAccess


def build_security(
    config: NodeConfig,
    instruments: Instruments,
    signals: Signals,
    active_image: ActiveImage,
    learned_acls: LearnedAcls,
) -> Security:
    """Return a node's security.

    While the node's controller is active, the ACLs and tokens are those of `active_image`.

    Raises:
        NodeConfigError: a file or a class cannot be used.
    """

    def acls() -> AclSet:
        newest = active_image.acls()
        return learned_acls.acls if newest is None else newest

    return Security(
        UserCredentialCache(),
        TokenCache(
            config.token_secret,
            new_salt=secrets.token_bytes,
            active_tokens=active_image.tokens,
            seen=signals.token_read,
        ),
        learned_acls,
        Authorization(config.authorizer, acls, instruments.authorizer_log),
        build_serde(config),
        build_channel_security(config),
        build_zookeeper_access(config),
    )


def build_channel_security(config: NodeConfig) -> ChannelSecurity | None:
    """Return the TLS of the channels between brokers; None: plain text.

    Raises:
        NodeConfigError: a file cannot be read.
    """
    try:
        return None if config.channel_files is None else load_security(config.channel_files)
    except ChannelSecurityError as error:
        raise NodeConfigError(str(error)) from error


def build_zookeeper_access(config: NodeConfig) -> SessionAccess:
    """Return the ZooKeeper access of the controller session and of the broker session.

    Raises:
        NodeConfigError: a key or trust store cannot be read.
    """
    try:
        tls = build_zookeeper_tls(config.zookeeper_tls)
    except SecurityConfigError as error:
        raise NodeConfigError(str(error)) from error
    controller, broker = config.controller_access, config.broker_access
    return SessionAccess(
        dataclasses.replace(controller, tls=tls), dataclasses.replace(broker, tls=tls)
    )


def build_serde(config: NodeConfig) -> PrincipalSerde:
    """Return the serde for principals in Envelopes: the builder's, unless principals are fake.

    Raises:
        NodeConfigError: a builder cannot be used; or this broker forwards, and a custom builder
            has no serde (KIP-590 §KafkaPrincipal Serialization: there is no default).
    """
    if config.bridgehead.fake_principals:
        return FakePrincipalSerde()
    name = config.broker.string("principal.builder.class") or DEFAULT_BUILDER
    for listener, security in config.security.items():
        if security.builder != name:
            key = f"listener.name.{listener.lower()}.{BUILDER_CLASS}"
            _serde_of(config, key, security.builder, security.properties)
    return _serde_of(config, BUILDER_CLASS, name, config.broker.originals)


def _serde_of(
    config: NodeConfig, key: str, name: str, properties: Mapping[str, str]
) -> PrincipalSerde:
    if name == DEFAULT_BUILDER:
        return DefaultPrincipalSerde()
    try:
        builder = load_builder(name, "DEFAULT", properties)
    except SecurityConfigError as error:
        raise NodeConfigError(str(error)) from error
    lacking = [method for method in _SERDE_METHODS if not callable(getattr(builder, method, None))]
    if not lacking:
        return CustomPrincipalSerde(name, cast(PrincipalCodec, builder))
    if config.forwards:
        raise NodeConfigError(
            f"{key}={name} lacks {' and '.join(lacking)}: a broker that forwards requests needs "
            "the methods serialize and deserialize, which put the client's principal into an "
            "Envelope (KIP-590)."
        )
    return DefaultPrincipalSerde()


def build_login_requirements(
    config: NodeConfig, security: Security, wall_ms: Callable[[], int]
) -> Mapping[str, LoginRequirements]:
    """Return the authentication of each listener, by its name.

    Raises:
        NodeConfigError: a key store or a principal builder cannot be used.
    """
    sources = Sources(security.users, security.tokens, lambda: secrets.token_urlsafe(24), wall_ms)
    try:
        return {
            name: login_requirements(security, sources)
            for name, security in config.security.items()
        }
    except SecurityConfigError as error:
        raise NodeConfigError(str(error)) from error
