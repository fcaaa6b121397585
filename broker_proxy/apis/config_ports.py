"""The interfaces through which the config APIs of a broker use the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.records import ConfigResource

# Returns the effective broker configs; they change with notifications.
CurrentConfig = Callable[[], EffectiveBrokerConfig]


class ConfigReader(Protocol):
    """Reads the stored overrides of a config entity from ZooKeeper; {} when there are none."""

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        """`entity_type` is that of ZooKeeper, `entity_name` is sanitised.

        Invalid content counts as empty, as in Kafka; the error is added to `invalid`, or logged.
        """


class EntityReader(Protocol):
    """Reads the stored overrides of every user (with its clients), client or ip."""

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        """`entity_type` is that of ZooKeeper; names are returned as stored."""


class TopicNames(Protocol):
    """The part of the metadata cache that config APIs use."""

    def has_topic(self, name: str) -> bool:
        """Return whether the topic is in the cache."""
