"""State that several parts of a running node read. Each value is stored in one place only."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from broker_proxy.connections.connection_quotas import ConnectionLimits, ConnectionQuotas
from broker_proxy.metadata.token_cache import Tokens
from cluster_model.acls.bindings import AclSet
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigResource
from cluster_model.session_state import SessionState
from cluster_model.znodes.layout import DEFAULT_ENTITY
from controller.controller import Controller
from envelope.messages import Hello
from node.assembly.signals import Signal

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BrokerState:
    """This broker as a member of the cluster."""

    broker_id: int
    incarnation: str
    cluster_id: str = ""
    epoch: int = -1  # of the current registration
    session: SessionState = SessionState.SUSPENDED

    @property
    def request_prefix(self) -> str:
        """The prefix of this broker's request ids."""
        return f"{self.broker_id}.{self.incarnation}"

    def registered(self, epoch: int) -> None:
        """Store the epoch of a registration."""
        self.epoch = epoch

    def session_changed(self, session: SessionState) -> None:
        """Store the state of the broker session."""
        self.session = session

    def hello(self) -> Hello:
        """Return the message that opens a channel to the controller."""
        return Hello(self.broker_id, self.incarnation)


class BrokerConfigs:
    """The effective broker configs. Dynamic configs in ZooKeeper override the properties file."""

    def __init__(self, config: BrokerConfig, quotas: ConnectionQuotas) -> None:
        """When the configs change, the limits of `quotas` change with them."""
        self._config = config
        self._quotas = quotas
        self._stored: dict[str, Mapping[str, str]] = {}
        self._effective = EffectiveBrokerConfig.of(config)
        self.entities = (DEFAULT_ENTITY, str(config.broker_id))
        self.limits_changed: Signal[()] = Signal()

    def current(self) -> EffectiveBrokerConfig:
        """Return the current effective configs."""
        return self._effective

    def store(self, stored: Mapping[str, Mapping[str, str]]) -> None:
        """Apply stored configs. The keys are entities: this broker, the cluster default or both."""
        self._stored.update(stored)
        overrides = (self._stored.get(entity, {}) for entity in self.entities)
        self._effective = EffectiveBrokerConfig.of(self._config, *overrides)
        for reason in self._effective.ignored:
            _log.warning("a stored broker config is ignored: %s", reason)
        self._quotas.limits = ConnectionLimits.of(self._effective, self._quotas.listeners)
        self.limits_changed()

    def config_changed(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Apply a change if it concerns this broker."""
        if resource.entity_type == "brokers" and resource.entity_name in self.entities:
            self.store({resource.entity_name: configs})

    def unclean_election(self, image: MetadataImage, topic: str) -> bool:
        """Return a topic's `unclean.leader.election.enable`."""
        name = "unclean.leader.election.enable"
        override = image.config("topics", topic).get(name)
        if override is not None:
            return str(override).strip().lower() == "true"
        return self._effective.value(name) is True


class ActiveImage:
    """The image of this node's controller, while that controller is active.

    This image is newer than the metadata that this node's broker has read from ZooKeeper.
    """

    def __init__(self) -> None:
        self.controller: Controller | None = None  # set once, when the controller is built

    @property
    def image(self) -> MetadataImage | None:
        """Return the image; None on standby."""
        return None if self.controller is None else self.controller.image

    def tokens(self) -> Tokens | None:
        """Return the delegation tokens; None on standby."""
        return None if (image := self.image) is None else image.tokens

    def acls(self) -> AclSet | None:
        """Return the ACLs; None on standby."""
        return None if (image := self.image) is None else image.acls
