"""A node's configuration: Kafka's and Bridgehead's properties, checked at start."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from bridgehead.authorizer import Authorizer
from bridgehead.cluster.properties import parse_properties
from broker_proxy.authentication.listener_security import (
    PROTOCOLS,
    Listener,
    ListenerSecurity,
    read_security,
)
from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.requests.routing import (
    ROUTING_TABLES,
    WITHOUT_DATA_PLANE,
    RoutingTable,
    with_kraft_requests,
)
from cluster_model.client import Client
from cluster_model.configs.bridgehead_configs import (
    BLOCKING,
    ENVELOPE,
    ZOOKEEPER_READ,
    ZOOKEEPER_WRITE,
    BridgeheadConfig,
)
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.delegation_tokens import TokenSecret
from cluster_model.inter_broker_protocol import BRIDGE, is_below_the_bridge, level_of
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from cluster_model.znodes.access import OPEN_ACCESS, Credential, ZooKeeperAccess
from envelope.channel_security import ChannelFiles
from node.assembly.authorization import AuthorizerConfigError, load_authorizer
from node.assembly.replication_listener import NAME as REPLICATION
from node.assembly.replication_listener import listener_properties, needs_listener
from node.migration_config import MigrationConfig, MigrationConfigError, read_migration
from node.zookeeper_tls import ZooKeeperTls, read_zookeeper_tls

LOOPBACK = "127.0.0.1"


class NodeConfigError(Exception):
    """The properties are wrong. The text is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node's configuration."""

    broker: BrokerConfig
    bridgehead: BridgeheadConfig
    authorizer: Authorizer | None
    listeners: tuple[Listener, ...]
    advertised: Mapping[str, tuple[str, int]]  # listener name -> host, port (0: as bound)
    security: Mapping[str, ListenerSecurity]  # by listener name
    channel_files: ChannelFiles | None  # None: Envelopes are sent in plain text
    controller_access: (
        ZooKeeperAccess  # of controller and direct session; node.assembly.security adds TLS
    )
    broker_access: ZooKeeperAccess  # of the broker session; node.assembly.security adds TLS
    zookeeper_tls: ZooKeeperTls | None  # of all sessions; None: plain text
    opens_replication_listener: bool = False  # node.assembly.replication_listener
    migration: MigrationConfig | None = None  # None: this broker does not migrate to KRaft

    @property
    def broker_id(self) -> int:
        """This broker's id."""
        return self.broker.broker_id

    @property
    def rack(self) -> str | None:
        """This broker's rack, if any."""
        return self.broker.string("broker.rack")

    @property
    def session_timeout_ms(self) -> int:
        """zookeeper.session.timeout.ms."""
        return self.broker.int("zookeeper.session.timeout.ms")

    @property
    def connection_timeout_ms(self) -> int:
        """zookeeper.connection.timeout.ms; its default is the session timeout."""
        value = self.broker.value("zookeeper.connection.timeout.ms")
        return value if isinstance(value, int) else self.session_timeout_ms

    @property
    def inter_broker_principal(self) -> KafkaPrincipal:
        """The principal of this broker; ANONYMOUS without certificates."""
        if self.channel_files is None:
            return ANONYMOUS
        return KafkaPrincipal("User", self.bridgehead.inter_broker_user)

    @property
    def own_client(self) -> Client:
        """This broker as the client of requests that it creates itself."""
        return Client(
            host=LOOPBACK,
            listener_name=self.listeners[0].name,
            security_protocol=self.listeners[0].security_protocol,
            principal=self.inter_broker_principal,
            client_id=str(self.broker_id),
        )

    @property
    def protocol_level(self) -> str:
        """inter.broker.protocol.version in full, for example 3.3-IV3 for 3.3."""
        level = level_of(self.broker.string("inter.broker.protocol.version") or "")
        assert level is not None  # read_config checks it.
        return level

    @property
    def writes_directly(self) -> bool:
        """Whether this broker writes to ZooKeeper itself instead of forwarding."""
        return is_below_the_bridge(self.protocol_level)

    @property
    def forwards(self) -> bool:
        """Whether this broker forwards writes to the controller."""
        return self.bridgehead.forwarding_enabled and not self.writes_directly

    @property
    def routes(self) -> RoutingTable:
        """The APIs that this broker serves."""
        routes = ROUTING_TABLES if self.bridgehead.data_plane_enabled else WITHOUT_DATA_PLANE
        return routes if self.migration is None else with_kraft_requests(routes)

    @property
    def token_secret(self) -> TokenSecret | None:
        """delegation.token.secret.key or its old name; None disables delegation tokens."""
        name, old_name = "delegation.token.secret.key", "delegation.token.master.key"
        key = self.broker.string(name) or self.broker.string(old_name)
        return TokenSecret(key) if key else None

    @property
    def listener_for_envelopes(self) -> str | None:
        """The listener that accepts Envelopes in the Kafka protocol; None: no listener does."""
        if not self.bridgehead.forwarding_enabled:
            return None
        names = ("control.plane.listener.name", "inter.broker.listener.name")
        chosen = [name for key in names if (name := self.broker.string(key))]
        return (chosen or [self.broker.string("security.inter.broker.protocol") or ""])[0].upper()

    @property
    def inter_broker_listener(self) -> str:
        """The inter-broker listener: REPLICATION if opened, else the one in Kafka's properties."""
        if self.opens_replication_listener:
            return REPLICATION
        name = self.broker.string("inter.broker.listener.name")
        return (name or self.broker.string("security.inter.broker.protocol") or "").upper()

    @property
    def zookeeper_connect(self) -> str:
        """zookeeper.connect, with chroot."""
        return self.broker.string("zookeeper.connect") or ""


def read_config(text: str) -> NodeConfig:
    """Parse and check a properties file.

    Raises:
        NodeConfigError: a property is missing or contradicts others. The message says what to do.
        InvalidBrokerConfigError: properties have invalid values.
    """
    properties = dict(parse_properties(text))
    broker = BrokerConfig.from_properties(properties)
    if broker.broker_id < 0:
        raise NodeConfigError("broker.id is missing: give each node its own number.")
    if not broker.string("zookeeper.connect"):
        raise NodeConfigError("zookeeper.connect is missing: set it to host:port of ZooKeeper.")
    config = BridgeheadConfig(properties)
    _check_level(broker, config)
    try:
        authorizer = load_authorizer(properties)
    except AuthorizerConfigError as error:
        raise NodeConfigError(str(error)) from error
    if config.fake_principals and properties.get("authorizer.class.name", "").strip():
        raise NodeConfigError(
            "bridgehead.forwarding.principals=fake cannot be combined with an authorizer: set it "
            "to real, or remove authorizer.class.name."
        )
    protocols = _protocol_map(properties.get("listener.security.protocol.map", ""))
    listeners = tuple(
        _listener(name, host, port, protocols, config)
        for name, host, port in _endpoints(properties.get("listeners") or "PLAINTEXT://:9092")
    )
    security = {listener.name: _security(listener, config, properties) for listener in listeners}
    advertised = {
        name: (host, port)
        for name, host, port in _endpoints(properties.get("advertised.listeners") or "")
    }
    files = _channel_files(config)
    opens_one = (
        config.data_plane_enabled
        and files is not None
        and needs_listener(broker, security, has_authorizer=authorizer is not None)
    )
    if opens_one and files is not None:
        host = config.grpc_listener.rpartition(":")[0]
        listeners += (Listener(REPLICATION, "SSL", host, 0),)
        security[REPLICATION] = _replication_security(files)
        advertised[REPLICATION] = (config.grpc_advertised.rpartition(":")[0] or host, 0)
    return NodeConfig(
        broker,
        config,
        authorizer,
        listeners,
        advertised,
        security,
        files,
        *_zookeeper_access(broker, config),
        _zookeeper_tls(broker),
        opens_one,
        _migration(broker, config, security, protocols),
    )


def _migration(
    broker: BrokerConfig,
    config: BridgeheadConfig,
    listeners: Mapping[str, ListenerSecurity],
    protocols: Mapping[str, str],
) -> MigrationConfig | None:
    level = level_of(broker.string("inter.broker.protocol.version") or "")
    assert level is not None  # BrokerConfig checks it.
    try:
        return read_migration(broker, config, level, listeners, protocols)
    except MigrationConfigError as error:
        raise NodeConfigError(str(error)) from error


def _check_level(broker: BrokerConfig, config: BridgeheadConfig) -> None:
    """Check that two Bridgehead properties fit inter.broker.protocol.version.

    From the bridge release on, Envelopes must be enabled. Below the bridge release, a write cannot
    wait for all brokers, because the controller does not execute the write.
    """
    name = "inter.broker.protocol.version"
    level = level_of(broker.string(name) or "")
    if level is None or is_below_the_bridge(level):
        if level is not None and config.metadata_blocking != "controller":
            raise NodeConfigError(
                f"{BLOCKING}={config.metadata_blocking} needs brokers that forward: set "
                f"{name}={BRIDGE} or higher, or remove {BLOCKING}."
            )
        return
    if not config.envelope_supported:
        raise NodeConfigError(
            f"{ENVELOPE}=false makes the node act as a release before {BRIDGE}: set {name}=3.3 or "
            "lower."
        )


def _endpoints(text: str) -> list[tuple[str, str, int]]:
    endpoints = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, address = part.partition("://")
        host, _, port = address.rpartition(":")
        if not name or not port.isdigit():
            raise NodeConfigError(f"{part} is not a listener: write NAME://host:port.")
        endpoints.append((name.upper(), host.strip("[]"), int(port)))
    return endpoints


def _protocol_map(text: str) -> dict[str, str]:
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _listener(
    name: str, host: str, port: int, protocols: Mapping[str, str], config: BridgeheadConfig
) -> Listener:
    protocol = protocols.get(name, name)
    if protocol not in PROTOCOLS:
        raise NodeConfigError(
            f"Listener {name} has no security protocol: set one of {', '.join(PROTOCOLS)} in "
            f"listener.security.protocol.map, for example {name}:{PROTOCOLS[2]}."
        )
    return Listener(name, protocol, host or LOOPBACK, port, config.dialect(name))


def _security(
    listener: Listener, config: BridgeheadConfig, properties: Mapping[str, str]
) -> ListenerSecurity:
    try:
        security = read_security(listener.name, listener.security_protocol, properties)
    except SecurityConfigError as error:
        raise NodeConfigError(str(error)) from error
    if security.admits_strangers and not (
        config.remote_plaintext_allowed or _is_loopback(listener.host)
    ):
        raise NodeConfigError(
            f"Listener {listener.name} accepts clients on {listener.host} without authentication: "
            "bind it to 127.0.0.1, use SASL or ssl.client.auth=required, or allow it with "
            "--allow-remote-plaintext (bridgehead.allow.remote.plaintext=true)."
        )
    return security


def _channel_files(config: BridgeheadConfig) -> ChannelFiles | None:
    """Return the files for mutual TLS: all three, or none if plain text is allowed."""
    files, host = config.grpc_files, config.grpc_listener.rpartition(":")[0]
    if all(files):
        return ChannelFiles(*files)
    if any(files):
        raise NodeConfigError(
            "bridgehead.grpc.certificate, .key and .authority belong together: set all three."
        )
    if not (config.remote_plaintext_allowed or _is_loopback(host)):
        raise NodeConfigError(
            f"bridgehead.grpc.listener accepts Envelopes on {host} without authentication: bind it "
            "to 127.0.0.1, set bridgehead.grpc.certificate, .key and .authority, or allow it with "
            "--allow-remote-plaintext (bridgehead.allow.remote.plaintext=true)."
        )
    return None


def _replication_security(files: ChannelFiles) -> ListenerSecurity:
    try:
        return read_security(REPLICATION, "SSL", listener_properties(files))
    except OSError as error:
        raise NodeConfigError(
            f"The certificates of the channel cannot be read: {error}."
        ) from error


def _zookeeper_tls(broker: BrokerConfig) -> ZooKeeperTls | None:
    try:
        return read_zookeeper_tls(broker)
    except SecurityConfigError as error:
        raise NodeConfigError(str(error)) from error


def _zookeeper_access(
    broker: BrokerConfig, config: BridgeheadConfig
) -> tuple[ZooKeeperAccess, ZooKeeperAccess]:
    """Return the ZooKeeper access of the controller's and the broker's session."""
    texts = config.zookeeper_credentials
    if not broker.boolean("zookeeper.set.acl"):
        if any(texts):
            raise NodeConfigError(
                f"{ZOOKEEPER_WRITE} and {ZOOKEEPER_READ} need znodes with ACLs: set "
                "zookeeper.set.acl=true."
            )
        return OPEN_ACCESS, OPEN_ACCESS
    try:
        controller, brokers = (Credential.parse(text) for text in texts)
    except ValueError:
        raise NodeConfigError(
            f"zookeeper.set.acl=true needs two credentials: set {ZOOKEEPER_WRITE} and "
            f"{ZOOKEEPER_READ}, each user:password, the same on all nodes."
        ) from None
    if controller.user == brokers.user:
        raise NodeConfigError(
            f"{ZOOKEEPER_WRITE} and {ZOOKEEPER_READ} name the same user: use two users, "
            "because the broker session must not have the right to write."
        )
    return ZooKeeperAccess(controller, brokers), ZooKeeperAccess(brokers, brokers)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # A name may resolve to any address.
