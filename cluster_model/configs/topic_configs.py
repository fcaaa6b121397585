"""The topic configs of Kafka 3.9.1: effective values and validation (docs/kafka/configs.md).

The value of a topic config is the topic's override, else the value of the broker config that it
inherits from, else the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bridgehead.kafka_wire.config_codes import ConfigSource
from cluster_model.configs.broker_configs.effective import EffectiveBrokerConfig
from cluster_model.configs.broker_configs.static import BrokerConfig
from cluster_model.configs.broker_configs.table import synonym_names
from cluster_model.configs.table import read_config_table
from cluster_model.configs.types import (
    ConfigEntry,
    ConfigException,
    ConfigKey,
    ConfigValue,
    InvalidConfigurationException,
    Synonym,
    in_properties_order,
    invalid_value,
    render,
)
from cluster_model.scala_order import mutable_hash_order


@dataclass(frozen=True, slots=True)
class TopicConfigKey(ConfigKey):
    """A row of topic_configs.tsv."""

    broker_config: str | None  # supplies the value of a topic without an override


# In Kafka's order of definition, because Kafka reports the first bad value.
TOPIC_CONFIGS: Final[Mapping[str, TopicConfigKey]] = read_config_table(
    Path(__file__).with_name("topic_configs.tsv"),
    "broker config",
    lambda fields, broker_config: TopicConfigKey(*fields, broker_config or None),
)
_RESPONSE_ORDER: Final = mutable_hash_order(TOPIC_CONFIGS)
_MILLISECONDS: Final = {"ms": 1, "minutes": 60_000, "hours": 3_600_000}


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """The values that topics without overrides have, and their DescribeConfigs entries.

    They change only with the broker's configs; `LastTopicDefaults` keeps them.
    """

    values: Mapping[str, ConfigValue]
    entries: Mapping[str, ConfigEntry]  # in response order
    remote_storage_system: bool = field(default=False)

    @classmethod
    def of(cls, broker: EffectiveBrokerConfig) -> TopicDefaults:
        """Derive the defaults from the effective configs of a broker."""
        values: dict[str, ConfigValue] = {}
        entries: dict[str, ConfigEntry] = {}
        for name in _RESPONSE_ORDER:
            key = TOPIC_CONFIGS[name]
            values[name] = _broker_value(key, broker)
            synonyms = broker.synonyms(key.broker_config) if key.broker_config is not None else ()
            entries[name] = _entry(key, render(values[name]), synonyms)
        remote = broker.value("remote.log.storage.system.enable") is True
        return cls(MappingProxyType(values), MappingProxyType(entries), remote)


class LastTopicDefaults:
    """Computes topic defaults again only if a broker's stored configs have changed."""

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._layers: tuple[Mapping[str, str], Mapping[str, str]] | None = None
        self._defaults = TopicDefaults({}, {})

    def of(
        self, cluster_default: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> TopicDefaults:
        """Return the defaults for these stored broker configs; see EffectiveBrokerConfig."""
        layers = cluster_default, per_broker
        if layers != self._layers:
            effective = EffectiveBrokerConfig.of(self._static, *layers)
            self._layers, self._defaults = layers, TopicDefaults.of(effective)
        return self._defaults


def _broker_value(key: TopicConfigKey, broker: EffectiveBrokerConfig) -> ConfigValue:
    if key.broker_config is None:
        return key.parse(key.default)
    for name in synonym_names(key.broker_config):
        value = broker.value(name)
        factor = _MILLISECONDS.get(name.rpartition(".")[2])
        if isinstance(value, int) and factor is not None:
            return max(-1, value * factor) if key.name == "retention.ms" else value * factor
    return broker.value(key.broker_config)


def _entry(key: TopicConfigKey, value: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        key.name, value, source, key.sensitive, key.type, False, synonyms, key.documentation
    )


def effective_topic_configs(
    overrides: Mapping[str, str], defaults: TopicDefaults
) -> list[ConfigEntry]:
    """Return all 36 configs of a topic in the order of Kafka's response.

    A stored override that does not parse (written by hand) is returned unchanged; overrides with
    unknown names are omitted.
    """
    entries = []
    for name, inherited in defaults.entries.items():
        if name not in overrides:
            entries.append(inherited)
            continue
        key = TOPIC_CONFIGS[name]
        try:
            value = render(key.parse(overrides[name]))
        except ConfigException:
            value = overrides[name]
        own_synonym = Synonym(name, value, ConfigSource.TOPIC_CONFIG)
        entries.append(_entry(key, value, (own_synonym, *inherited.synonyms)))
    return entries


def validate_topic_configs(overrides: Mapping[str, str], defaults: TopicDefaults) -> None:
    """Validate a topic's overrides (docs/kafka/configs.md#validation).

    Raises:
        ConfigException: one value is invalid.
        InvalidConfigurationException: an unknown name, or values that conflict. AlterConfigs adds
            no prefix to this text.
    """
    for name in in_properties_order(overrides):
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigurationException(f"Unknown topic config name: {name}")
    values = dict(defaults.values)
    for name, key in TOPIC_CONFIGS.items():
        if name in overrides:
            values[name] = key.parse(overrides[name])
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise InvalidConfigurationException(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if values["remote.storage.enable"]:
        _check_remote_storage(values, defaults)
    if values["remote.log.delete.on.disable"] or values["remote.log.copy.disable"]:
        raise InvalidConfigurationException(
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
            "under Zookeeper's mode."
        )


def _check_remote_storage(values: Mapping[str, ConfigValue], defaults: TopicDefaults) -> None:
    if not defaults.remote_storage_system:
        raise ConfigException(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
    policies = values["cleanup.policy"]
    if isinstance(policies, tuple) and "compact" in policies:
        raise ConfigException("Remote log storage is unsupported for the compacted topics")
    for kind in ("bytes", "ms"):
        local, total = values[f"local.retention.{kind}"], values[f"retention.{kind}"]
        assert isinstance(local, int)
        assert isinstance(total, int)
        if total != -1 and local != -2:
            if local == -1:
                reason = f"Value must not be -1 as retention.{kind} value is set as {total}."
                raise invalid_value(f"local.retention.{kind}", str(local), reason)
            if local > total:
                reason = f"Value must not be more than property: retention.{kind} value."
                raise invalid_value(f"local.retention.{kind}", str(local), reason)
