"""What logins and principals of this node are made with, built from its properties."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from broker_proxy.authentication.listener_security import Sources, build_gate
from broker_proxy.authentication.principals import DEFAULT_BUILDER, load_builder
from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.logins import Gate
from cluster_model.znode_access import ZooKeeperAccess
from envelope.channel_security import ChannelSecurity, ChannelSecurityError, load_security
from envelope.principal_serde import (
    CustomPrincipalSerde,
    DefaultPrincipalSerde,
    FakePrincipalSerde,
    PrincipalCodec,
    PrincipalSerde,
)
from node.config import NodeConfig, NodeConfigError
from node.zookeeper_tls import build_zookeeper_tls

if TYPE_CHECKING:
    from node.node import Node


def build_channel_security(config: NodeConfig) -> ChannelSecurity | None:
    """Return what Envelopes travel with; None: in plain text.

    Raises:
        NodeConfigError: a file cannot be used.
    """
    try:
        return None if config.channel_files is None else load_security(config.channel_files)
    except ChannelSecurityError as wrong:
        raise NodeConfigError(str(wrong)) from wrong


class SessionAccess(NamedTuple):
    """How a node's two sessions come to ZooKeeper."""

    controller: ZooKeeperAccess
    broker: ZooKeeperAccess


def build_zookeeper_access(config: NodeConfig) -> SessionAccess:
    """Return how the node's sessions come to ZooKeeper.

    Raises:
        NodeConfigError: a store cannot be used.
    """
    try:
        tls = build_zookeeper_tls(config.zookeeper_tls)
    except SecurityConfigError as wrong:
        raise NodeConfigError(str(wrong)) from wrong
    controller, broker = config.controller_access, config.broker_access
    return SessionAccess(
        dataclasses.replace(controller, tls=tls), dataclasses.replace(broker, tls=tls)
    )


def build_serde(config: NodeConfig) -> PrincipalSerde:
    """Return how principals travel: as the principal builder says, if it says anything.

    Raises:
        NodeConfigError: the builder cannot be used.
    """
    if config.own.fake_principals:
        return FakePrincipalSerde()
    name = config.broker.string("principal.builder.class") or DEFAULT_BUILDER
    try:
        builder = load_builder(name, "DEFAULT", config.broker.originals)
    except SecurityConfigError as wrong:
        raise NodeConfigError(str(wrong)) from wrong
    if hasattr(builder, "serialize") and hasattr(builder, "deserialize"):
        return CustomPrincipalSerde(name, cast(PrincipalCodec, builder))
    return DefaultPrincipalSerde()


def build_gates(node: Node) -> Mapping[str, Gate]:
    """Return what the clients of each listener have to pass, by its name.

    Raises:
        NodeConfigError: a key store or a principal builder cannot be used.
    """
    sources = Sources(
        users=node.users,
        tokens=node.tokens,
        new_nonce=lambda: secrets.token_urlsafe(24),
        wall_ms=node.clock.wall_ms,
    )
    try:
        return {
            name: build_gate(security, sources) for name, security in node.config.security.items()
        }
    except SecurityConfigError as wrong:
        raise NodeConfigError(str(wrong)) from wrong
