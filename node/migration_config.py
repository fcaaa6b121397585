"""The configuration of a broker that migrates to KRaft, in Kafka's own properties (KIP-866).

Kafka's checks, and some more: a value that would make the migration wait for ever is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker_proxy.migration.lifecycle import Intervals
from broker_proxy.migration.quorum import Voter, parse_voters
from cluster_model.configs.bridgehead_configs import BridgeheadConfig
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.inter_broker_protocol import BRIDGE, LEVELS, feature_level

ENABLE: Final = "zookeeper.metadata.migration.enable"
VOTERS: Final = "controller.quorum.voters"
NAMES: Final = "controller.listener.names"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# From this level on, a broker may have several log directories.
_SEVERAL_LOG_DIRS: Final = "3.7-IV2"


class MigrationConfigError(Exception):
    """The properties of the migration are wrong. The text is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class MigrationConfig:
    """How this broker reaches the controllers, and how often it reports."""

    voters: tuple[Voter, ...]
    listener: str  # of the controllers
    security_protocol: str
    level: str
    intervals: Intervals

    @property
    def feature_level(self) -> int:
        """The level as a number, as in BrokerRegistration."""
        return feature_level(self.level)


def read_migration(
    broker: BrokerConfig,
    bridgehead: BridgeheadConfig,
    level: str,
    listeners: Mapping[str, object],
    protocols: Mapping[str, str],
) -> MigrationConfig | None:
    """Return the configuration; None if the migration is not enabled.

    `listeners`: this broker's, by name. `protocols`: listener.security.protocol.map.

    Raises:
        MigrationConfigError: a property is missing or contradicts others.
    """
    if not broker.boolean(ENABLE):
        return None
    _check(broker, bridgehead, level)
    names = [name for name in _list(broker.string(NAMES)) if name]
    if not names:
        raise MigrationConfigError(
            f"{ENABLE}=true needs the name of the controllers' listener: set {NAMES}=CONTROLLER."
        )
    listener = names[0].upper()
    if listener in listeners:
        raise MigrationConfigError(
            f"Listener {listener} is the controllers' ({NAMES}): remove it from listeners."
        )
    protocol = protocols.get(listener, listener if listener in _PROTOCOLS else "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise MigrationConfigError(
            f"Listener {listener} has no security protocol: set one of {', '.join(_PROTOCOLS)} in "
            "listener.security.protocol.map."
        )
    heartbeat_s, session_s = (
        broker.int(name) / 1000
        for name in ("broker.heartbeat.interval.ms", "broker.session.timeout.ms")
    )
    if heartbeat_s * 2 > session_s:
        raise MigrationConfigError(
            "broker.heartbeat.interval.ms must be at most half of broker.session.timeout.ms: the "
            "controller would fence this broker between two heartbeats."
        )
    return MigrationConfig(
        _voters(broker), listener, protocol, level, Intervals(heartbeat_s, session_s)
    )


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",")]


def _voters(broker: BrokerConfig) -> tuple[Voter, ...]:
    text = str(broker.originals.get(VOTERS, ""))
    try:
        voters = parse_voters(text)
    except ValueError as error:
        raise MigrationConfigError(f"{VOTERS}: {error}") from None
    if not voters:
        raise MigrationConfigError(
            f"{ENABLE}=true needs the addresses of the controllers: set {VOTERS}=ID@HOST:PORT,..."
        )
    if broker.broker_id in {voter.node_id for voter in voters}:
        raise MigrationConfigError(
            f"{VOTERS} has this broker's id {broker.broker_id}: give the controllers other ids, "
            "such as 3000."
        )
    return voters


def _check(broker: BrokerConfig, bridgehead: BridgeheadConfig, level: str) -> None:
    name = "inter.broker.protocol.version"
    if LEVELS.index(level) < LEVELS.index(BRIDGE):
        raise MigrationConfigError(
            f"{ENABLE}=true needs {name}={BRIDGE} or higher; this broker has {level}."
        )
    several = len([path for path in _list(broker.string("log.dirs")) if path]) > 1
    if several and LEVELS.index(level) < LEVELS.index(_SEVERAL_LOG_DIRS):
        raise MigrationConfigError(
            f"A broker with several log.dirs migrates only with {name}={_SEVERAL_LOG_DIRS} or "
            f"higher; this broker has {level}."
        )
    if (bridgehead.metadata_blocking, bridgehead.metadata_reads) != ("controller", "local"):
        raise MigrationConfigError(
            f"{ENABLE}=true needs bridgehead.metadata.blocking=controller and "
            "bridgehead.metadata.reads=local: a KRaft controller does not wait for brokers."
        )
