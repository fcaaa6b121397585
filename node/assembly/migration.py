"""The parts of a broker that migrates to KRaft (KIP-866): registration, Envelopes, requests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bridgehead.admin.errors import AdminConfigError
from bridgehead.kafka_wire.messages.broker_registration import Listener
from broker_proxy.apis.base import LocalApi
from broker_proxy.apis.migration.kraft_requests import (
    KraftRequests,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from broker_proxy.authentication.listener_security import properties_of_listener
from broker_proxy.client_request import AuthorizeFor
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.migration.kraft_link import KraftLink
from broker_proxy.migration.lifecycle import UNREGISTERED, BrokerLifecycle, Identity
from broker_proxy.migration.quorum import Quorum, QuorumConnection
from cluster_model.image import PROTOCOL_CODES, BrokerRegistration, Endpoint
from data_plane.log.meta_properties import Owner, directory_ids
from data_plane.partitions import Partitions
from data_plane.replication.peer import PeerSecurity
from envelope.principal_serde import PrincipalSerde
from node.assembly.replication import peer_security
from node.collaborators import Collaborators
from node.config import NodeConfig, NodeConfigError
from node.migration_config import MigrationConfig

# A supervisor waits 10 seconds for a node to stop.
_LEAVE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Migration:
    """The parts of one broker that speak with the KRaft controller."""

    config: NodeConfig
    settings: MigrationConfig
    lifecycle: BrokerLifecycle
    link: KraftLink
    new_requests: Callable[..., KraftRequests]

    def start(
        self, registration: BrokerRegistration, cluster_id: str, folders: Sequence[Path]
    ) -> None:
        """Begin to register. `folders` are the log directories.

        Raises:
            OSError: a log directory cannot be used, or belongs to another broker or cluster.
        """
        owner = Owner(cluster_id, registration.broker_id)
        log_dirs = directory_ids(folders, owner, secrets.token_bytes)
        self.lifecycle.start(
            Identity(
                broker_id=registration.broker_id,
                cluster_id=cluster_id,
                incarnation_id=secrets.token_bytes(16),
                listeners=tuple(
                    Listener(
                        at.listener_name, at.host, at.port, PROTOCOL_CODES[at.security_protocol]
                    )
                    for at in registration.endpoints
                ),
                rack=registration.rack,
                log_dirs=log_dirs,
                level=self.settings.level,
                feature_level=self.settings.feature_level,
            )
        )

    async def leave(self) -> None:
        """Let the controller move this broker's leaderships, as far as it does so in time."""
        await self.lifecycle.leave(_LEAVE_S)

    async def stop(self) -> None:
        """Close all connections to the controllers."""
        await self.lifecycle.stop()
        self.link.close()

    def local_apis(
        self,
        cache: MetadataCache,
        authorize_for: AuthorizeFor,
        partitions: Partitions | None,
    ) -> tuple[LocalApi, ...]:
        """Return the APIs with which the controller changes this broker's metadata."""
        config = self.config
        requests = self.new_requests(
            _listeners(config), authorize_for, cache, lambda: self.lifecycle.epoch
        )
        return (
            UpdateMetadata(requests),
            LeaderAndIsr(requests, config.broker_id, partitions),
            StopReplica(requests, partitions),
        )

    def status(self, *, controller_is_kraft: bool) -> dict[str, Any]:
        """Return this broker's part of `bridgehead status`."""
        lifecycle = self.lifecycle
        return {
            "controller_is_kraft": controller_is_kraft,
            "registered": lifecycle.epoch != UNREGISTERED,
            "broker_epoch": lifecycle.epoch,
            "fenced": lifecycle.is_fenced,
            "problem": lifecycle.problem,
        }


def _listener(at: Endpoint) -> Listener:
    return Listener(at.listener_name, at.host, at.port, PROTOCOL_CODES[at.security_protocol])


def build_migration(
    config: NodeConfig, serde: PrincipalSerde, collaborators: Collaborators
) -> Migration | None:
    """Return the parts; None if this broker does not migrate.

    Raises:
        NodeConfigError: the broker cannot log in to the controllers with its properties.
    """
    settings = config.migration
    if settings is None:
        return None
    quorum, security = Quorum(settings.voters), _security(config, settings)
    lifecycle = collaborators.lifecycle(
        quorum, QuorumConnection(quorum, security), settings.intervals
    )
    link = collaborators.kraft_link(
        QuorumConnection(quorum, security),
        QuorumConnection(quorum, security),
        serde=serde,
        broker_epoch=lambda: lifecycle.epoch,
    )
    return Migration(config, settings, lifecycle, link, collaborators.kraft_requests)


def _security(config: NodeConfig, settings: MigrationConfig) -> PeerSecurity:
    mechanism = config.broker.string("sasl.mechanism.controller.protocol") or ""
    try:
        return peer_security(
            str(config.broker_id),
            settings.security_protocol,
            mechanism,
            properties_of_listener(settings.listener, config.broker.originals),
        )
    except AdminConfigError as error:
        raise NodeConfigError(
            f"This broker cannot log in to the controllers' listener {settings.listener}: {error} "
            "Set its login as in Kafka (sasl.mechanism.controller.protocol and "
            f"listener.name.{settings.listener.lower()}.MECHANISM.sasl.jaas.config)."
        ) from error


def _listeners(config: NodeConfig) -> frozenset[str]:
    """Return the listeners that serve the controller: those between brokers."""
    names = {config.inter_broker_listener}
    if name := config.broker.string("inter.broker.listener.name"):
        names.add(name.upper())
    elif protocol := config.broker.string("security.inter.broker.protocol"):
        names.add(protocol.upper())
    return frozenset(names)
