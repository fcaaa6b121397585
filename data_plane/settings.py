"""The topic configs that logs and partitions use, typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from cluster_model.configs.topic_configs import TOPIC_CONFIGS, TopicDefaults
from cluster_model.configs.types import ConfigException, ConfigValue
from data_plane.records.validation import Rules

_NO_LIMIT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The effective configs of one topic."""

    values: Mapping[str, ConfigValue]

    @classmethod
    def of(cls, overrides: Mapping[str, str], defaults: TopicDefaults) -> TopicSettings:
        """Combine stored overrides with the broker's defaults; invalid overrides are ignored."""
        values = dict(defaults.values)
        for name, text in overrides.items():
            if name in TOPIC_CONFIGS:
                try:
                    values[name] = TOPIC_CONFIGS[name].parse(text)
                except ConfigException:
                    continue  # Written by hand. The default applies.
        return cls(values)

    def number(self, name: str) -> int:
        """Return a config that is a number."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    @property
    def is_compacted(self) -> bool:
        """True when cleanup.policy includes `compact`."""
        return self._has_policy("compact")

    @property
    def deletes(self) -> bool:
        """True when cleanup.policy includes `delete`."""
        return self._has_policy("delete")

    @property
    def segment_ms(self) -> int:
        """segment.ms; in a compacted topic at most max.compaction.lag.ms."""
        longest = self.number("segment.ms")
        return min(longest, self.number("max.compaction.lag.ms")) if self.is_compacted else longest

    def _has_policy(self, policy: str) -> bool:
        policies = self.values["cleanup.policy"]
        return isinstance(policies, tuple) and policy in policies

    def rules(self, partition: str) -> Rules:
        """Return the rules for produced records. Error messages show `partition` (`topic-0`)."""
        # If a newer limit has its default value, the older config replaces that limit (KIP-937).
        both = self.number("message.timestamp.difference.max.ms")
        before = self.number("message.timestamp.before.max.ms")
        after = self.number("message.timestamp.after.max.ms")
        return Rules(
            partition=partition,
            max_message_bytes=self.number("max.message.bytes"),
            is_compacted=self.is_compacted,
            uses_append_time=self.values["message.timestamp.type"] == "LogAppendTime",
            before_max_ms=both if before == _NO_LIMIT else before,
            after_max_ms=both if after == _NO_LIMIT else after,
            compression_type=str(self.values["compression.type"]),
        )


class OverrideReader(Protocol):
    """Reads the stored overrides of a config entity; {} when there are none."""

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """`entity_type` is the name in ZooKeeper, such as `topics`."""


class SettingsCache:
    """The settings of all topics that have a log on this broker.

    As in Kafka, they are read from ZooKeeper once; notifications report changes.
    """

    def __init__(
        self, reader: OverrideReader, current_defaults: Callable[[], TopicDefaults]
    ) -> None:
        self._reader = reader
        self._current_defaults = current_defaults
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._settings: dict[str, tuple[TopicDefaults, TopicSettings]] = {}

    def of(self, topic: str) -> TopicSettings:
        """Return the settings; the broker's defaults until the topic's overrides are read."""
        defaults = self._current_defaults()
        cached = self._settings.get(topic)
        if cached is not None and cached[0] is defaults:
            return cached[1]
        settings = TopicSettings.of(self._overrides.get(topic, {}), defaults)
        self._settings[topic] = (defaults, settings)
        return settings

    async def read(self, topic: str) -> TopicSettings:
        """Return the settings; read the topic's overrides first, if they are not known."""
        if topic not in self._overrides:
            overrides = await self._reader.read_config("topics", topic)
            if topic not in self._overrides:  # Otherwise a notification was faster.
                self.changed(topic, overrides)
        return self.of(topic)

    def is_read(self, topic: str) -> bool:
        """Return whether `of` knows the topic's overrides."""
        return topic in self._overrides

    def changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Store the overrides of a topic."""
        self._overrides[topic] = overrides
        self._settings.pop(topic, None)

    def forget(self, topic: str) -> None:
        """Forget a deleted topic."""
        self._overrides.pop(topic, None)
        self._settings.pop(topic, None)
