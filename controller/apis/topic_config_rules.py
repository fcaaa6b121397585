"""Topic configs in CreateTopics: validation, and the configs in the response.

As in Kafka, the results depend on the current dynamic configs of the controller's own broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_topics import CreatableTopicConfigs
from bridgehead.kafka_wire.schema import FixedList
from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.configs.topic_configs import (
    TopicDefaults,
    effective_topic_configs,
    validate_topic_configs,
)
from cluster_model.configs.types import ConfigEntry, ConfigException


class TopicConfigRules:
    """Checks and shows the configs of topics for CreateTopics.

    Inherited configs are computed again only when the broker's configs have changed, because a
    request may create a thousand topics.
    """

    def __init__(self, current: Callable[[], EffectiveBrokerConfig]) -> None:
        self._current = current
        self._known: EffectiveBrokerConfig | None = None
        self._defaults = TopicDefaults({}, {})
        self._inherited = FixedList(())

    def check(self, overrides: Mapping[str, str]) -> None:
        """Validate overrides.

        Raises:
            ApiError: INVALID_CONFIG with Kafka's text (docs/kafka/configs.md#validation).
        """
        self._refresh()
        try:
            validate_topic_configs(overrides, self._defaults)
        except ConfigException as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.message) from None

    def show(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Return all configs of a topic, as the response lists them from version 5 on."""
        self._refresh()
        if not overrides:
            return self._inherited
        return [_shown(entry) for entry in effective_topic_configs(overrides, self._defaults)]

    def _refresh(self) -> None:
        current = self._current()
        if current is not self._known:
            self._known = current
            self._defaults = TopicDefaults.of(current)
            inherited = effective_topic_configs({}, self._defaults)
            self._inherited = FixedList(map(_shown, inherited))


def _shown(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
    )
