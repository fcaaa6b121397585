"""The topic configs of Kafka 3.9.1: the table, what is in force for a topic, what is refused.

A topic's value is its own override, else what its broker says (the synonym), else the default.
Rows stand in the order of DescribeConfigs and CreateTopics answers; of several bad values Kafka
reports the first in its order of definition, VALIDATION_ORDER (kafka-semantics 3.7, 7.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cluster_model.broker_configs.effective import EffectiveBrokerConfig
from cluster_model.broker_configs.keys import (
    BOOLEAN,
    DOUBLE,
    GZIP_LEVEL,
    INT,
    LIST,
    LONG,
    STRING,
)
from cluster_model.config_types import (
    ConfigEntry,
    ConfigException,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ConfigValue,
    InvalidConfigurationException,
    OneOf,
    Range,
    Synonym,
    Validator,
    at_least,
    in_properties_order,
    invalid_value,
    metadata_version,
    render,
    throttled_replicas,
)

_LONG_MAX: Final = str(2**63 - 1)


@dataclass(frozen=True, slots=True)
class TopicConfigKey(ConfigKey):
    """A topic config. `synonym` is the broker config whose synonyms are shown; None: none."""

    synonym: str | None


def _row(
    name: str,
    config_type: ConfigType,
    default: str,
    synonym: str | None,
    documentation: str,
    validator: Validator | None = None,
) -> TopicConfigKey:
    return TopicConfigKey(name, config_type, default, validator, documentation, synonym)


# fmt: off
_ROWS: Final = (
    _row("compression.type", STRING, "producer", "compression.type",
         "Codec batches are stored with; producer keeps theirs.",
         OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))),
    _row("remote.log.delete.on.disable", BOOLEAN, "false", None,
         "Drop remote segments when tiering is switched off."),
    _row("leader.replication.throttled.replicas", LIST, "", None,
         "Replicas whose leader is throttled: partition:broker pairs, or *.", throttled_replicas),
    _row("remote.storage.enable", BOOLEAN, "false", None, "Tier this topic's segments."),
    _row("message.downconversion.enable", BOOLEAN, "true", "log.message.downconversion.enable",
         "Serve old consumers converted records."),
    _row("min.insync.replicas", INT, "1", "min.insync.replicas",
         "In-sync replicas that acks=all needs.", at_least(1)),
    _row("segment.jitter.ms", LONG, "0", "log.roll.jitter.ms", "Spread of segment ages.",
         at_least(0)),
    _row("remote.log.copy.disable", BOOLEAN, "false", None, "Stop uploading new segments."),
    _row("local.retention.ms", LONG, "-2", "log.local.retention.ms",
         "Age of local segments once uploaded; -2 follows retention.ms.", at_least(-2)),
    _row("cleanup.policy", LIST, "delete", "log.cleanup.policy",
         "Delete old segments, compact them, or both.", OneOf(("compact", "delete"))),
    _row("flush.ms", LONG, _LONG_MAX, "log.flush.interval.ms", "Age of unflushed records.",
         at_least(0)),
    _row("follower.replication.throttled.replicas", LIST, "", None,
         "Replicas whose follower is throttled: partition:broker pairs, or *.",
         throttled_replicas),
    _row("compression.lz4.level", INT, "9", "compression.lz4.level", "LZ4 effort.", Range(1, 17)),
    _row("segment.bytes", INT, "1073741824", "log.segment.bytes", "Segment size.", at_least(14)),
    _row("retention.ms", LONG, "604800000", "log.retention.ms",
         "Age of records kept; -1 is forever.", at_least(-1)),
    _row("compression.gzip.level", INT, "-1", "compression.gzip.level", "Gzip effort.",
         GZIP_LEVEL),
    _row("flush.messages", LONG, _LONG_MAX, "log.flush.interval.messages",
         "Records before a flush to disk.", at_least(1)),
    _row("compression.zstd.level", INT, "3", "compression.zstd.level", "Zstandard effort.",
         Range(-131072, 22)),
    _row("message.format.version", STRING, "3.0-IV1", "log.message.format.version",
         "Record format; ignored from protocol version 3.0.", metadata_version),
    _row("max.compaction.lag.ms", LONG, _LONG_MAX, "log.cleaner.max.compaction.lag.ms",
         "Age by which a record must be compactable.", at_least(1)),
    _row("file.delete.delay.ms", LONG, "60000", "log.segment.delete.delay.ms",
         "Delay before a dropped file is deleted.", at_least(0)),
    _row("max.message.bytes", INT, "1048588", "message.max.bytes",
         "Largest record batch accepted.", at_least(0)),
    _row("min.compaction.lag.ms", LONG, "0", "log.cleaner.min.compaction.lag.ms",
         "Age before a record may be compacted.", at_least(0)),
    _row("message.timestamp.type", STRING, "CreateTime", "log.message.timestamp.type",
         "Whose clock stamps a record.", OneOf(("CreateTime", "LogAppendTime"))),
    _row("local.retention.bytes", LONG, "-2", "log.local.retention.bytes",
         "Size of local segments once uploaded; -2 follows retention.bytes.", at_least(-2)),
    _row("preallocate", BOOLEAN, "false", "log.preallocate", "Reserve a segment's space at once."),
    _row("min.cleanable.dirty.ratio", DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio",
         "Dirty share that makes a log worth compacting.", Range(0, 1)),
    _row("index.interval.bytes", INT, "4096", "log.index.interval.bytes",
         "Bytes between index entries.", at_least(0)),
    _row("unclean.leader.election.enable", BOOLEAN, "false", "unclean.leader.election.enable",
         "A replica out of sync may lead."),
    _row("retention.bytes", LONG, "-1", "log.retention.bytes",
         "Size of a partition kept; -1 is no cap."),
    _row("delete.retention.ms", LONG, "86400000", "log.cleaner.delete.retention.ms",
         "Life of tombstones.", at_least(0)),
    _row("message.timestamp.after.max.ms", LONG, _LONG_MAX, "log.message.timestamp.after.max.ms",
         "How far in the future a record's time may lie.", at_least(0)),
    _row("message.timestamp.before.max.ms", LONG, _LONG_MAX, "log.message.timestamp.before.max.ms",
         "How far in the past a record's time may lie.", at_least(0)),
    _row("segment.ms", LONG, "604800000", "log.roll.ms", "Segment age.", at_least(1)),
    _row("message.timestamp.difference.max.ms", LONG, _LONG_MAX,
         "log.message.timestamp.difference.max.ms",
         "Distance of a record's time from the broker's; deprecated.", at_least(0)),
    _row("segment.index.bytes", INT, "10485760", "log.index.size.max.bytes",
         "Size of an offset index.", at_least(4)),
)
# fmt: on

TOPIC_CONFIGS: Final[Mapping[str, TopicConfigKey]] = MappingProxyType(
    {key.name: key for key in _ROWS}
)

VALIDATION_ORDER: Final = tuple(
    """
    segment.bytes segment.ms segment.jitter.ms segment.index.bytes flush.messages flush.ms
    retention.bytes retention.ms max.message.bytes index.interval.bytes delete.retention.ms
    min.compaction.lag.ms max.compaction.lag.ms file.delete.delay.ms min.cleanable.dirty.ratio
    cleanup.policy unclean.leader.election.enable min.insync.replicas compression.type
    compression.gzip.level compression.lz4.level compression.zstd.level preallocate
    message.format.version message.timestamp.type message.timestamp.difference.max.ms
    message.timestamp.before.max.ms message.timestamp.after.max.ms
    leader.replication.throttled.replicas follower.replication.throttled.replicas
    message.downconversion.enable remote.storage.enable local.retention.ms local.retention.bytes
    remote.log.copy.disable remote.log.delete.on.disable
    """.split()  # noqa: SIM905 (forty names read better so)
)
assert set(VALIDATION_ORDER) == set(TOPIC_CONFIGS)

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
# Topic configs whose broker value is the first of several that is set, with its factor to ms.
_TIME_SOURCES: Final[Mapping[str, tuple[tuple[str, int], ...]]] = MappingProxyType(
    {
        "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
        "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
        "retention.ms": (
            ("log.retention.ms", 1),
            ("log.retention.minutes", _MINUTE_MS),
            ("log.retention.hours", _HOUR_MS),
        ),
        "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    }
)


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What a broker supplies to topics that say nothing: values and ready-made answer entries.

    Computed once per state of the broker's configs, because an answer about a thousand topics
    needs it a thousand times.
    """

    values: Mapping[str, ConfigValue]
    entries: Mapping[str, ConfigEntry]  # in answer order
    remote_storage_system: bool = field(default=False)

    @classmethod
    def of(cls, broker: EffectiveBrokerConfig) -> TopicDefaults:
        """Take the defaults out of a broker's configs in force."""
        values: dict[str, ConfigValue] = {}
        entries: dict[str, ConfigEntry] = {}
        for name, key in TOPIC_CONFIGS.items():
            values[name] = _broker_value(key, broker)
            synonyms = broker.synonyms(key.synonym) if key.synonym is not None else ()
            entries[name] = _entry(key, render(values[name]), synonyms)
        remote = broker.value("remote.log.storage.system.enable") is True
        return cls(MappingProxyType(values), MappingProxyType(entries), remote)


def _broker_value(key: TopicConfigKey, broker: EffectiveBrokerConfig) -> ConfigValue:
    for name, factor in _TIME_SOURCES.get(key.name, ()):
        value = broker.value(name)
        if isinstance(value, int):
            return max(-1, value * factor) if key.name == "retention.ms" else value * factor
    return broker.value(key.synonym) if key.synonym is not None else key.parse(key.default)


def _entry(key: TopicConfigKey, value: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        key.name, value, source, key.sensitive, key.type, False, synonyms, key.documentation
    )


def effective_topic_configs(
    overrides: Mapping[str, str], defaults: TopicDefaults
) -> list[ConfigEntry]:
    """Return all 36 configs of a topic in answer order.

    `overrides` are the stored ones. A stored value that does not parse (written by hand) is shown
    as it stands; stored names that Kafka does not know are left out.
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
        own = Synonym(name, value, ConfigSource.TOPIC_CONFIG)
        entries.append(_entry(key, value, (own, *inherited.synonyms)))
    return entries


def validate_topic_configs(overrides: Mapping[str, str], defaults: TopicDefaults) -> None:
    """Refuse a set of overrides as Kafka does (kafka-semantics 7.3).

    Raises ConfigException for one bad value, InvalidConfigurationException for an unknown name or
    a conflict: AlterConfigs prefixes only the former's text with the resource.
    """
    for name in in_properties_order(overrides):
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigurationException(f"Unknown topic config name: {name}")
    values = dict(defaults.values)
    for name in VALIDATION_ORDER:
        if name in overrides:
            values[name] = TOPIC_CONFIGS[name].parse(overrides[name])
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
