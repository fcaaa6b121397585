"""Broker configs: their table, the precedence of values, and `bridgehead.*` configs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bridgehead.kafka_wire.config_codes import ConfigSource, ConfigType
from cluster_model.configs.bridgehead_configs import (
    BridgeheadConfig,
    bridgehead_config_errors,
)
from cluster_model.configs.broker_configs import (
    BrokerConfig,
    EffectiveBrokerConfig,
    InvalidBrokerConfigError,
)
from cluster_model.configs.topic_configs import TopicDefaults, effective_topic_configs
from cluster_model.configs.types import Synonym
from cluster_model.quirks import KNOWN_QUIRKS

LIVE = Path(__file__).parents[2] / "data" / "describe_broker_3.9.1.jsonl.gz"


def test_configs_equal_the_configs_of_a_live_kafka() -> None:
    """The 314 configs are equal in order, value, source, type, flags and synonyms."""
    with gzip.open(LIVE, "rt") as lines:
        recorded = [json.loads(line) for line in lines]
    configured = {row["name"]: row["value"] for row in recorded if row["source"] == 4}
    config = EffectiveBrokerConfig.of(BrokerConfig.from_properties(configured))
    ours = [
        {
            "name": entry.name,
            "value": entry.value,
            "read_only": entry.read_only,
            "source": entry.source.value,
            "sensitive": entry.sensitive,
            "type": entry.type.value,
            "synonyms": [
                [synonym.name, synonym.value, synonym.source.value] for synonym in entry.synonyms
            ],
        }
        for entry in config.entries()
    ]
    assert len(recorded) == 314
    assert recorded == ours


def test_values_have_types_and_unknown_names_are_kept() -> None:
    config = BrokerConfig.from_properties({"num.partitions": " 5 ", "my.plugin.option": "x"})
    assert config.int("num.partitions") == 5
    assert config.long("log.segment.delete.delay.ms") == 60_000
    assert config.boolean("auto.create.topics.enable") is True
    assert config.list("log.cleanup.policy") == ("delete",)
    assert config.double("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.string("broker.rack") is None
    assert config.get_original("num.partitions") == " 5 "
    assert config.get_original("my.plugin.option") == "x"
    assert config.broker_id == -1


def test_a_config_with_a_listener_prefix_takes_precedence() -> None:
    """For any other listener, the config without the prefix applies."""
    config = BrokerConfig.from_properties({"listener.name.plaintext.max.connections": "9"})
    assert config.int("listener.name.plaintext.max.connections") == 9
    assert config.int("listener.name.other.max.connections") == 2**31 - 1


def test_all_errors_of_a_properties_file_are_reported() -> None:
    with pytest.raises(InvalidBrokerConfigError) as rejected:
        BrokerConfig.from_properties(
            {
                "num.partitions": "x",
                "log.segment.bytes": "1",
                "listener.name.a.max.connections": "-1",
                "bridgehead.quirks": "nonsense",
            }
        )
    assert rejected.value.errors == (
        "Invalid value x for configuration num.partitions: Not a number of type INT",
        "Invalid value 1 for configuration log.segment.bytes: Value must be at least 14",
        "Invalid value -1 for configuration max.connections: Value must be at least 0",
        "bridgehead.quirks=nonsense names unknown quirks: nonsense; the quirks are "
        f"{', '.join(KNOWN_QUIRKS)}.",
    )


def test_broker_id_and_node_id_are_the_same() -> None:
    assert BrokerConfig.from_properties({"node.id": "4"}).broker_id == 4
    with pytest.raises(InvalidBrokerConfigError, match="must be the same number"):
        BrokerConfig.from_properties({"node.id": "4", "broker.id": "5"})


def test_queued_max_request_bytes_is_at_least_socket_request_max_bytes() -> None:
    """The text of the error is from a live Kafka."""
    properties = {"socket.request.max.bytes": "1000", "queued.max.request.bytes": "1000"}
    assert BrokerConfig.from_properties(properties).long("queued.max.request.bytes") == 1000
    with pytest.raises(InvalidBrokerConfigError) as rejected:
        BrokerConfig.from_properties(properties | {"queued.max.request.bytes": "999"})
    assert rejected.value.errors == (
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )


def test_stored_values_take_precedence_and_hide_synonyms() -> None:
    """The expected values are from a live Kafka."""
    static = BrokerConfig.from_properties({"broker.id": "1", "log.retention.hours": "5"})
    config = EffectiveBrokerConfig.of(
        static, {"log.retention.ms": "456"}, {"log.retention.ms": "123"}
    )
    entry = config.entry("log.retention.ms")
    assert (entry.value, entry.source) == ("123", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert entry.synonyms == (
        Synonym("log.retention.ms", "123", ConfigSource.DYNAMIC_BROKER_CONFIG),
        Synonym("log.retention.ms", "456", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("log.retention.hours", "5", ConfigSource.STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )
    # As in Kafka, log.retention.hours has the default value but the source of the static value.
    hours = config.entry("log.retention.hours")
    assert (hours.value, hours.source) == ("168", ConfigSource.STATIC_BROKER_CONFIG)
    assert TopicDefaults.of(config).values["retention.ms"] == 123


def test_custom_and_secret_values_are_hidden() -> None:
    """A config of unknown type counts as sensitive."""
    config = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({"my.custom": "abc", "ssl.key.password": "hush"})
    )
    custom = config.entry("my.custom")
    assert (custom.value, custom.sensitive, custom.type) == (None, True, ConfigType.UNKNOWN)
    assert custom.read_only
    assert custom.synonyms == (Synonym("my.custom", None, ConfigSource.STATIC_BROKER_CONFIG),)
    password = config.entry("ssl.key.password")
    assert (password.value, password.sensitive) == (None, True)
    assert [entry.name for entry in config.entries()][-1] == "my.custom"


def test_the_cluster_default_lists_only_its_own_configs() -> None:
    """The expected values are from a live Kafka."""
    config = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({"num.io.threads": "4"}),
        {"compression.type": "lz4", "my.default": "5"},
        {"compression.type": "gzip"},
    )
    entries = config.entries(only_cluster_default=True)
    assert [(entry.name, entry.value) for entry in entries] == [
        ("compression.type", "lz4"),
        ("my.default", None),
    ]
    assert [len(entry.synonyms) for entry in entries] == [1, 1]


def test_invalid_stored_values_are_skipped_and_reported() -> None:
    config = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({}),
        {"num.io.threads": "x", "listeners": "A://:1"},
        {"broker.id": "7", "num.io.threads": "9"},
    )
    assert config.value("num.io.threads") == 9
    assert len(config.ignored) == 3


def test_a_topic_with_an_invalid_override_can_still_be_described() -> None:
    """Brokers reject such an override. It exists only if another program wrote it to ZooKeeper."""
    defaults = TopicDefaults.of(EffectiveBrokerConfig.of(BrokerConfig.from_properties({})))
    entries = effective_topic_configs({"retention.ms": "x", "no.such": "1"}, defaults)
    assert len(entries) == 36
    described = {entry.name: (entry.value, entry.source) for entry in entries}
    assert described["retention.ms"] == ("x", ConfigSource.TOPIC_CONFIG)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("bridgehead.metadata.blocking", "everyone", "must be one of controller, cluster"),
        ("bridgehead.metadata.reads", "newest", "must be one of local, controller"),
        ("bridgehead.metadata.controller.id", "liar", "actual, random, self or a broker id"),
        ("bridgehead.metadata.delay.ms", "-1", "number of milliseconds"),
        ("bridgehead.nonsense", "1", "is not a config"),
        ("bridgehead.dialect", "shipped", "can only be set per listener"),
        ("listener.name.plaintext.bridgehead.dialect", "daft", "must be one of shipped, drafted"),
        ("listener.name.plaintext.bridgehead.quirks", "", "cannot be set per listener"),
        ("listener.name.OLD.bridgehead.dialect", "drafted", "listener.name.old.bridgehead.dialect"),
    ],
)
def test_invalid_bridgehead_configs_are_rejected(name: str, value: str, part: str) -> None:
    (error,) = bridgehead_config_errors({name: value})
    assert name in error
    assert part in error
    with pytest.raises(InvalidBrokerConfigError):
        BrokerConfig.from_properties({name: value})


def test_bridgehead_configs_have_defaults_and_listener_values() -> None:
    plain = BridgeheadConfig({})
    assert (plain.metadata_blocking, plain.metadata_delay_ms) == ("controller", 0)
    assert plain.metadata_controller_id("PLAINTEXT") == "actual"
    assert plain.dialect("PLAINTEXT") == "shipped"
    configured = BridgeheadConfig(
        {
            "bridgehead.metadata.controller.id": "self",
            "listener.name.external.bridgehead.metadata.controller.id": "9",
        }
    )
    assert configured.metadata_controller_id("EXTERNAL") == "9"
    assert configured.metadata_controller_id("PLAINTEXT") == "self"


def test_bridgeheads_own_configs_are_not_listed() -> None:
    """`bridgehead up` adds them to the properties file, but clients see a Kafka broker's list."""
    own_configs = {
        "bridgehead.grpc.key": "/key.pem",
        "bridgehead.controller.pinned": "1",
        "listener.name.plaintext.bridgehead.dialect": "drafted",
    }
    plain = EffectiveBrokerConfig.of(BrokerConfig.from_properties({}))
    config = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({**own_configs, "my.custom": "x"})
    )
    listed = [entry.name for entry in config.entries()]
    assert listed == [*(entry.name for entry in plain.entries()), "my.custom"]
