"""The interfaces through which the config APIs of a broker use the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.records import ConfigResource

# Returns the effective broker configs. Notifications from ZooKeeper change them.
CurrentConfig = Callable[[], EffectiveBrokerConfig]


class ConfigReader(Protocol):
    """Reads the stored overrides of a config entity from ZooKeeper; {} when there are none."""

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        """`entity_type` and the sanitised `entity_name` are the names in ZooKeeper.

        Invalid content counts as empty, as in Kafka. The error is added to `invalid`, or
        logged if `invalid` is None.
        """


class EntityReader(Protocol):
    """Reads the stored overrides of all entities of one type: users, clients or ips."""

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        """`entity_type` is the name in ZooKeeper. `users` includes the client ids of users."""


class TopicNames(Protocol):
    """The part of the metadata cache that config APIs use."""

    def has_topic(self, name: str) -> bool:
        """Return whether the topic is in the cache."""
