"""The effective configs of a broker. The first layer that sets a config determines its value.

The layers are the dynamic configs of the broker, those of the cluster default, the properties file
and the defaults. A layer that sets a config also overrides its synonyms in the later layers: a
dynamic log.retention.ms hides a static log.retention.hours (recorded live). Stored values that
cannot be applied are skipped and reported in `ignored`, so that one bad znode does not stop a
broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bridgehead.kafka_wire.config_codes import ConfigSource, ConfigType
from cluster_model.configs.bridgehead_configs import is_own
from cluster_model.configs.broker_configs.static import BrokerConfig
from cluster_model.configs.broker_configs.table import (
    BROKER_CONFIGS,
    DYNAMIC_ONLY,
    UpdateMode,
    config_key,
    read_only,
    synonym_names,
)
from cluster_model.configs.types import ConfigEntry, ConfigException, ConfigValue, Synonym, render
from cluster_model.scala_order import mutable_hash_order

_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {name: key.default for name, key in BROKER_CONFIGS.items() if key.default is not None}
)
# Kafka lists the configs in the order of a hash map.
_RESPONSE_ORDER = mutable_hash_order(BROKER_CONFIGS, len(BROKER_CONFIGS))


@dataclass(frozen=True, slots=True)
class EffectiveBrokerConfig:
    """The config layers of one broker; immutable. Build it with `of`."""

    static: BrokerConfig
    cluster_default: Mapping[str, str]  # stored in /config/brokers/<default>
    per_broker: Mapping[str, str]  # stored in /config/brokers/<id>
    ignored: tuple[str, ...]  # the reasons why stored values are not used
    _merged: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(
        cls,
        static: BrokerConfig,
        cluster_default: Mapping[str, str] = MappingProxyType({}),
        per_broker: Mapping[str, str] = MappingProxyType({}),
    ) -> EffectiveBrokerConfig:
        """Apply both stored layers to the static configs."""
        ignored: list[str] = []
        default_layer = _usable(cluster_default, ignored, of_broker=False)
        broker_layer = _usable(per_broker, ignored, of_broker=True)
        merged = dict(static.originals)
        for layer in (default_layer, broker_layer):
            for name, value in layer.items():
                for synonym in synonym_names(name, of_listener=False):
                    merged.pop(synonym, None)
                merged[name] = value
        return cls(static, default_layer, broker_layer, tuple(ignored), MappingProxyType(merged))

    def value(self, name: str) -> ConfigValue:
        """Return the parsed effective value of a known name."""
        key = config_key(name)
        assert key is not None, name
        return key.parse(self._merged.get(name, key.default))

    def of_listener(self, listener: str, name: str) -> ConfigValue:
        """Return the listener's value of a config; if it has none, the broker's value."""
        listener_key = f"listener.name.{listener.lower()}.{name}"
        return self.value(listener_key if listener_key in self._merged else name)

    def synonyms(self, name: str, names: tuple[str, ...] | None = None) -> tuple[Synonym, ...]:
        """Return the possible sources of a value, in order of precedence.

        As in Kafka, the list starts at the first source with exactly this name. It is empty if only
        a synonym is set (docs/kafka/configs.md#describeconfigs).
        """
        key = config_key(name)
        hidden = key is None or key.sensitive
        synonyms = [
            Synonym(other, None if hidden else layer[other], source)
            for layer, source in (
                (self.per_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
                (self.cluster_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
                (self.static.originals, ConfigSource.STATIC_BROKER_CONFIG),
                (_DEFAULTS, ConfigSource.DEFAULT_CONFIG),
            )
            for other in (names or synonym_names(name))
            if other in layer
        ]
        first = next(
            (i for i, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms)
        )
        return tuple(synonyms[first:])

    def entry(self, name: str, *, only_cluster_default: bool = False) -> ConfigEntry:
        """Return one config as DescribeConfigs describes it."""
        key = config_key(name)
        sensitive = key is None or key.sensitive
        synonyms = self.synonyms(name)
        if only_cluster_default:
            wanted = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            synonyms = tuple(synonym for synonym in synonyms if synonym.source is wanted)
        if key is None or sensitive:
            value = None
        elif only_cluster_default:
            value = self.cluster_default[name]
        else:
            value = render(self.value(name))
        return ConfigEntry(
            name,
            value,
            synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
            sensitive,
            key.type if key is not None else ConfigType.UNKNOWN,
            read_only(name),
            synonyms,
            key.documentation if key is not None else None,
        )

    def entries(self, *, only_cluster_default: bool = False) -> list[ConfigEntry]:
        """Return the configs of this broker, or those of the cluster default, in Kafka's order.

        Custom names come last, sorted by name; Kafka places them by hash. Our own configs
        (`bridgehead.*`) are omitted, because Kafka does not have them.
        """
        names: Iterable[str] = self.cluster_default
        if not only_cluster_default:
            own_names = {name for name in self.static.originals if is_own(name)}
            names = {*self._merged, *BROKER_CONFIGS} - own_names
        present = set(names)
        ordered = [name for name in _RESPONSE_ORDER if name in present]
        ordered += sorted(present.difference(BROKER_CONFIGS))
        return [self.entry(name, only_cluster_default=only_cluster_default) for name in ordered]


# Returns a broker's effective configs. Notifications from ZooKeeper change them.
CurrentConfig = Callable[[], EffectiveBrokerConfig]


def _usable(stored: Mapping[str, str], ignored: list[str], *, of_broker: bool) -> dict[str, str]:
    """Return the stored values that can be applied; add the reasons for the rest to `ignored`."""
    usable: dict[str, str] = {}
    for name, value in stored.items():
        key = config_key(name)
        is_usable = key is not None and name not in DYNAMIC_ONLY
        if (
            key is not None
            and is_usable
            and key.update_mode is UpdateMode.READ_ONLY
            and name in BROKER_CONFIGS
        ):
            ignored.append(f"{name} cannot be changed while the broker runs")
            continue
        if (
            key is not None
            and is_usable
            and key.update_mode is UpdateMode.PER_BROKER
            and not of_broker
        ):
            ignored.append(f"{name} can only be set per broker")
            continue
        try:
            if key is not None:
                key.parse(value)
        except ConfigException as error:
            ignored.append(error.message)
            continue
        usable[name] = value
    return usable
