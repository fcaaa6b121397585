"""What a live Kafka 3.9.1 said to bad config values, row by row, and what it accepted."""

from __future__ import annotations

import pytest

from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.broker_configs.dynamic import validate_dynamic_configs
from cluster_model.config_types import (
    ConfigException,
    ConfigType,
    InvalidConfigurationException,
    java_double_text,
    parse,
    render,
)
from cluster_model.topic_configs import TopicDefaults, validate_topic_configs

BROKER = EffectiveBrokerConfig.of(BrokerConfig.from_properties({"broker.id": "1"}))
DEFAULTS = TopicDefaults.of(BROKER)
VALUE = "Invalid value {} for configuration {}: {}"
THROTTLED = (
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
    "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
CODECS = "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
POLICIES = "String must be one of: compact, delete"
BOOLEAN = "Expected value to be either true or false"

REFUSED_TOPIC_VALUES = [
    ("message.format.version", "foo", "foo", "Version foo is not a valid version"),
    ("message.format.version", "", "", "Version  is not a valid version"),
    (
        "message.timestamp.type",
        "x",
        "x",
        "String must be one of: CreateTime, LogAppendTime",
    ),
    ("cleanup.policy", "compact,", "", POLICIES),
    ("cleanup.policy", "shred", "shred", POLICIES),
    ("min.cleanable.dirty.ratio", "2", "2.0", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "-0.5", "-0.5", "Value must be at least 0"),
    ("min.cleanable.dirty.ratio", "abc", "abc", "Not a number of type DOUBLE"),
    ("min.cleanable.dirty.ratio", "1_0", "1_0", "Not a number of type DOUBLE"),
    ("min.cleanable.dirty.ratio", "1e5", "100000.0", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "123456789.5", "1.234567895E8", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "1e400", "Infinity", "Value must be no more than 1"),
    ("compression.gzip.level", "0", "0", "Value must be between 1 and 9 or equal to -1"),
    ("compression.zstd.level", "-131073", "-131073", "Value must be at least -131072"),
    ("compression.lz4.level", "18", "18", "Value must be no more than 17"),
    ("compression.type", "GZIP", "GZIP", CODECS),
    ("preallocate", "yes", "yes", BOOLEAN),
    ("segment.bytes", "1", "1", "Value must be at least 14"),
    ("segment.bytes", "2147483648", "2147483648", "Not a number of type INT"),
    ("segment.bytes", "1.5", "1.5", "Not a number of type INT"),
    ("segment.bytes", "", "", "Not a number of type INT"),
    ("segment.bytes", "1_000", "1_000", "Not a number of type INT"),
    ("leader.replication.throttled.replicas", "0:1,x", "[0:1, x]", THROTTLED),
    ("leader.replication.throttled.replicas", "*,0:1", "[*, 0:1]", THROTTLED),
    ("leader.replication.throttled.replicas", "a:1", "[a:1]", THROTTLED),
    ("local.retention.ms", "-3", "-3", "Value must be at least -2"),
    ("max.compaction.lag.ms", "0", "0", "Value must be at least 1"),
    ("retention.ms", "-2", "-2", "Value must be at least -1"),
    ("retention.ms", "", "", "Not a number of type LONG"),
    ("segment.ms", "0", "0", "Value must be at least 1"),
    ("flush.messages", "0", "0", "Value must be at least 1"),
    ("max.message.bytes", "-1", "-1", "Value must be at least 0"),
]

ACCEPTED_TOPIC_VALUES = [
    ("message.format.version", "2.8"),
    ("message.format.version", "0.10.0"),
    ("message.format.version", "3.9"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "compact,compact"),
    ("compression.type", "gzip "),
    ("segment.bytes", "+20"),
    ("segment.bytes", "\u0663\u0663"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", ""),
    ("leader.replication.throttled.replicas", "0:1,"),
    ("local.retention.ms", "99999999999"),
    ("unclean.leader.election.enable", " true"),
    ("preallocate", "TRUE "),
    ("min.cleanable.dirty.ratio", "0.5f"),
    ("min.cleanable.dirty.ratio", "NaN"),
]


@pytest.mark.parametrize(("name", "value", "shown", "reason"), REFUSED_TOPIC_VALUES)
def test_a_bad_topic_value_is_refused_in_kafkas_words(
    name: str, value: str, shown: str, reason: str
) -> None:
    """Parsing shows the text as given, a validator the parsed value."""
    with pytest.raises(ConfigException) as refused:
        validate_topic_configs({name: value}, DEFAULTS)
    assert refused.value.message == VALUE.format(shown, name, reason)
    assert not isinstance(refused.value, InvalidConfigurationException)


@pytest.mark.parametrize(("name", "value"), ACCEPTED_TOPIC_VALUES)
def test_what_kafka_accepts_is_accepted(name: str, value: str) -> None:
    """No value is refused that a live Kafka takes."""
    validate_topic_configs({name: value}, DEFAULTS)


REMOTE = "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under "
REFUSED_TOPIC_SETS = [
    ({"no.such": "1", "max.compaction.lag.ms": "x"}, "Unknown topic config name: no.such"),
    ({"remote.log.copy.disable": "true"}, REMOTE + "Zookeeper's mode."),
    ({"remote.log.delete.on.disable": "true"}, REMOTE + "Zookeeper's mode."),
    (
        {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
        "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
    ),
]


@pytest.mark.parametrize(("configs", "text"), REFUSED_TOPIC_SETS)
def test_a_set_is_refused_without_a_prefix(configs: dict[str, str], text: str) -> None:
    """Unknown names and conflicts have their own kind, so that no API puts a prefix before them."""
    with pytest.raises(InvalidConfigurationException) as refused:
        validate_topic_configs(configs, DEFAULTS)
    assert refused.value.message == text


def test_the_first_bad_value_in_kafkas_order_is_reported() -> None:
    """Of several bad values it is the order of definition that counts, not the request's."""
    with pytest.raises(ConfigException, match=r"segment\.bytes: Not a number of type INT"):
        validate_topic_configs({"max.compaction.lag.ms": "x", "segment.bytes": "x"}, DEFAULTS)


def test_remote_storage_needs_the_brokers_system() -> None:
    """Without it the topic is refused; with it compaction is."""
    with pytest.raises(ConfigException, match="Tiered Storage functionality is disabled"):
        validate_topic_configs({"remote.storage.enable": "true"}, DEFAULTS)
    static = BrokerConfig.from_properties({"remote.log.storage.system.enable": "true"})
    tiered = TopicDefaults.of(EffectiveBrokerConfig.of(static))
    validate_topic_configs({"remote.storage.enable": "true"}, tiered)
    with pytest.raises(ConfigException, match="unsupported for the compacted topics"):
        validate_topic_configs(
            {"remote.storage.enable": "true", "cleanup.policy": "compact"}, tiered
        )


def test_a_brokers_dynamic_default_counts_in_a_conflict() -> None:
    """The lags are compared as they would be in force, broker's values included."""
    broker = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({}), {"log.cleaner.max.compaction.lag.ms": "5"}
    )
    with pytest.raises(InvalidConfigurationException, match=r"\(9\) > .*\(5\)"):
        validate_topic_configs({"min.compaction.lag.ms": "9"}, TopicDefaults.of(broker))


WRAPPED = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration "
    "Invalid dynamic configuration"
)
THREADS = "Dynamic thread count update validation failed for {}, value should {}"
BROKER_LISTENERS = "Error creating broker listeners from '{}': {}"
REFUSED_BROKER_VALUES = [
    (
        "num.io.threads",
        "100",
        WRAPPED.format(
            THREADS.format("num.io.threads=100", "not be greater than double the current value 8")
        ),
    ),
    (
        "num.io.threads",
        "1",
        WRAPPED.format(THREADS.format("num.io.threads=1", "be at least half the current value 8")),
    ),
    ("num.io.threads", "0", VALUE.format("0", "num.io.threads", "Value must be at least 1")),
    ("num.io.threads", "", VALUE.format("", "num.io.threads", "Not a number of type INT")),
    (
        "num.replica.fetchers",
        "0",
        WRAPPED.format(THREADS.format("num.replica.fetchers=0", "be at least 1")),
    ),
    (
        "listener.name.plaintext.num.network.threads",
        "100",
        WRAPPED.format(
            THREADS.format(
                "num.network.threads=100", "not be greater than double the current value 3"
            )
        ),
    ),
    ("log.cleaner.threads", "0", "/ by zero"),
    (
        "log.cleaner.threads",
        "5",
        WRAPPED.format(
            "Log cleaner threads cannot be increased to more than double the current value 1"
        ),
    ),
    (
        "log.cleaner.dedupe.buffer.size",
        "1",
        "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
        "thread.",
    ),
    (
        "log.retention.ms",
        "0",
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal "
        "to 1",
    ),
    ("log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
    (
        "log.roll.jitter.ms",
        "-1",
        "requirement failed: log.roll.jitter.ms must be greater than or equal to 0",
    ),
    (
        "max.connections.per.ip.overrides",
        "foo",
        "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, "
        "end -1, length 3",
    ),
    (
        "max.connection.creation.rate",
        "0",
        WRAPPED.format("Invalid max.connection.creation.rate 0"),
    ),
    (
        "producer.id.expiration.ms",
        "x",
        VALUE.format("x", "producer.id.expiration.ms", "Not a number of type INT"),
    ),
    (
        "listeners",
        "FOO",
        BROKER_LISTENERS.format("FOO", "Unable to parse FOO to a broker endpoint"),
    ),
    (
        "advertised.listeners",
        "EXT://x:1",
        BROKER_LISTENERS.format("EXT://x:1", "No security protocol defined for listener EXT"),
    ),
    (
        "listener.security.protocol.map",
        "PLAINTEXT:FOO",
        "Invalid security protocol `FOO` defined in listener.security.protocol.map",
    ),
    (
        "ssl.keystore.location",
        "/x",
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: HashSet(ssl.keystore.location)",
    ),
    (
        "leader.replication.throttled.rate",
        "x",
        VALUE.format("x", "leader.replication.throttled.rate", "Not a number of type LONG"),
    ),
    (
        "listener.name.PLAINTEXT.max.connections",
        "x",
        VALUE.format("x", "max.connections", "Not a number of type INT"),
    ),
    (
        "log.message.format.version",
        "2.0",
        "Cannot update these configs dynamically: Set(log.message.format.version)",
    ),
    ("broker.id", "x", "Cannot update these configs dynamically: Set(broker.id)"),
    (
        "log.cleanup.policy",
        "compact,foo",
        VALUE.format("foo", "log.cleanup.policy", POLICIES),
    ),
]


@pytest.mark.parametrize(("name", "value", "text"), REFUSED_BROKER_VALUES)
def test_a_bad_broker_value_is_refused_in_kafkas_words(name: str, value: str, text: str) -> None:
    """Recorded from a broker with default configs."""
    with pytest.raises(ConfigException) as refused:
        validate_dynamic_configs({name: value}, BROKER, of_broker=True)
    assert refused.value.message == text


ACCEPTED_BROKER_VALUES = [
    ("num.network.threads", "1"),
    ("log.retention.ms", "-2"),
    ("log.flush.interval.ms", "-1"),
    ("log.cleaner.min.compaction.lag.ms", "9223372036854775807"),
    ("max.connections.per.ip.overrides", "1.2.3.4:5"),
    ("listener.name.plaintext.ssl.keystore.location", "/x"),
    ("advertised.listeners", "PLAINTEXT://x:1"),
    ("listener.name.nosuch.max.connections", "5"),
    ("log.message.downconversion.enable", "TRUE "),
    ("my.custom", "1"),
]


@pytest.mark.parametrize(("name", "value"), ACCEPTED_BROKER_VALUES)
def test_a_broker_value_that_kafka_accepts_is_accepted(name: str, value: str) -> None:
    """No value is refused that a live Kafka takes, custom names included."""
    validate_dynamic_configs({name: value}, BROKER, of_broker=True)


LOCAL = "Cannot update these configs at default cluster level, broker id must be specified: Set({})"
REFUSED_CLUSTER_DEFAULTS = [
    ({"advertised.listeners": "PLAINTEXT://x:1"}, LOCAL.format("advertised.listeners")),
    (
        {"listener.name.plaintext.ssl.keystore.password": "5"},
        LOCAL.format("listener.name.plaintext.ssl.keystore.password"),
    ),
    (
        {"broker.id": "1", "num.partitions": "2", "node.id": "5"},
        "Cannot update these configs dynamically: Set(node.id, num.partitions, broker.id)",
    ),
]


@pytest.mark.parametrize(("configs", "text"), REFUSED_CLUSTER_DEFAULTS)
def test_what_is_a_brokers_own_cannot_be_the_clusters(configs: dict[str, str], text: str) -> None:
    """Offenders stand in the order in which Java walks them."""
    with pytest.raises(ConfigException) as refused:
        validate_dynamic_configs(configs, BROKER, of_broker=False)
    assert refused.value.message == text
    validate_dynamic_configs(
        {"listener.name.plaintext.max.connections": "5"}, BROKER, of_broker=False
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (100000.0, "100000.0"),
        (123456789.5, "1.234567895E8"),
        (1e7, "1.0E7"),
        (1e-3, "0.001"),
        (1e-4, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_look_as_java_prints_them(number: float, text: str) -> None:
    """DescribeConfigs shows doubles; clients compare them as text."""
    assert java_double_text(number) == text


def test_values_are_shown_as_kafka_normalises_them() -> None:
    """Blanks go, lists lose theirs around commas, booleans become lower case."""
    assert render(parse("k", " a , b ", ConfigType.LIST)) == "a,b"
    assert render(parse("k", "TRUE ", ConfigType.BOOLEAN)) == "true"
    assert render(parse("k", " 5 ", ConfigType.INT)) == "5"
    assert render(parse("k", "", ConfigType.LIST)) == ""
