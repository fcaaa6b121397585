"""What the config APIs of a broker need of the node around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.records import ConfigResource

# The broker's configs in force; another value after each change notification.
CurrentConfig = Callable[[], EffectiveBrokerConfig]


class ConfigReader(Protocol):
    """Reads the stored overrides of a config entity from ZooKeeper; {} when there are none."""

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """`entity_type` is ZooKeeper's word, `entity_name` the sanitised name."""
        ...


class EntityReader(Protocol):
    """Reads the stored overrides of every user (and client below), client or ip."""

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        """`entity_type` is ZooKeeper's word; names come as stored."""
        ...


class TopicNames(Protocol):
    """The metadata cache, as far as configs need it."""

    def has_topic(self, name: str) -> bool:
        """Tell whether this broker knows the topic."""
        ...
