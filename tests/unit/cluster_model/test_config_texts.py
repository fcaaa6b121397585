"""Config values that Kafka 3.9.1 accepts and rejects, with its error texts (recorded live)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.config_codes import ConfigType
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.configs.broker_configs.dynamic import validate_dynamic_configs
from cluster_model.configs.topic_configs import TopicDefaults, validate_topic_configs
from cluster_model.configs.types import (
    ConfigException,
    InvalidConfigurationException,
    java_double_text,
    parse,
    render,
)

ROWS = Path(__file__).parents[2] / "data" / "config_errors.jsonl"
BROKER = EffectiveBrokerConfig.of(BrokerConfig.from_properties({"broker.id": "1"}))
DEFAULTS = TopicDefaults.of(BROKER)


def validate(resource: str, configs: dict[str, str]) -> None:
    if resource == "topic":
        validate_topic_configs(configs, DEFAULTS)
    else:
        validate_dynamic_configs(configs, BROKER, of_broker=resource == "broker")


@pytest.mark.parametrize(
    "row",
    list(map(json.loads, ROWS.read_text().splitlines())),
    ids=lambda row: json.dumps(row["configs"]),
)
def test_configs_are_validated_as_in_kafka(row: dict[str, Any]) -> None:
    """The rows are from Kafka with default configs; a null `error` means an accepted value.

    `prefixed` is false for errors to which AlterConfigs adds no prefix.
    """
    if row["error"] is None:
        validate(row["resource"], row["configs"])
        return
    with pytest.raises(ConfigException) as rejected:
        validate(row["resource"], row["configs"])
    assert rejected.value.message == row["error"]
    unprefixed = isinstance(rejected.value, InvalidConfigurationException)
    assert unprefixed is not row.get("prefixed", True)


def test_the_first_invalid_value_in_definition_order_is_reported() -> None:
    with pytest.raises(ConfigException, match=r"segment\.bytes: Not a number of type INT"):
        validate_topic_configs({"max.compaction.lag.ms": "x", "segment.bytes": "x"}, DEFAULTS)


def test_remote_storage_requires_the_broker_config_and_excludes_compaction() -> None:
    with pytest.raises(ConfigException, match="Tiered Storage functionality is disabled"):
        validate_topic_configs({"remote.storage.enable": "true"}, DEFAULTS)
    static = BrokerConfig.from_properties({"remote.log.storage.system.enable": "true"})
    tiered = TopicDefaults.of(EffectiveBrokerConfig.of(static))
    validate_topic_configs({"remote.storage.enable": "true"}, tiered)
    with pytest.raises(ConfigException, match="unsupported for the compacted topics"):
        validate_topic_configs(
            {"remote.storage.enable": "true", "cleanup.policy": "compact"}, tiered
        )


def test_conflicts_are_detected_on_effective_values() -> None:
    broker = EffectiveBrokerConfig.of(
        BrokerConfig.from_properties({}), {"log.cleaner.max.compaction.lag.ms": "5"}
    )
    with pytest.raises(InvalidConfigurationException, match=r"\(9\) > .*\(5\)"):
        validate_topic_configs({"min.compaction.lag.ms": "9"}, TopicDefaults.of(broker))


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
def test_doubles_are_printed_as_in_java(number: float, text: str) -> None:
    assert java_double_text(number) == text


def test_values_are_normalized_as_in_kafka() -> None:
    assert render(parse("k", " a , b ", ConfigType.LIST)) == "a,b"
    assert render(parse("k", "TRUE ", ConfigType.BOOLEAN)) == "true"
    assert render(parse("k", " 5 ", ConfigType.INT)) == "5"
    assert render(parse("k", "", ConfigType.LIST)) == ""


@pytest.mark.timeout(20)  # Takes milliseconds, but a minute if a pattern backtracks.
@pytest.mark.parametrize(
    ("text", "kind"),
    [("1" * 32_766 + "x", ConfigType.DOUBLE), ("a" + " " * 32_765 + "b", ConfigType.LIST)],
)
def test_a_long_value_takes_linear_time(text: str, kind: ConfigType) -> None:
    for _ in range(100):
        with contextlib.suppress(ConfigException):
            assert parse("name", text, kind) == (text,)


def test_only_javas_blanks_separate_the_elements_of_a_list() -> None:
    assert parse("name", " a ,\tb\x0b,c", ConfigType.LIST) == ("a", "b", "c")
    assert parse("name", "a\u00a0,b", ConfigType.LIST) == ("a\u00a0", "b")
