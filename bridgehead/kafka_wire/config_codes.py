"""Codes in the config APIs: types and sources of values, and incremental operations.

docs/kafka/configs.md#describeconfigs, KIP-226, KIP-339, KIP-569. A type or source that a later
release adds is UNKNOWN.
"""

from __future__ import annotations

from enum import IntEnum

from bridgehead.kafka_wire.codes import ExtensibleCode


class ConfigSource(ExtensibleCode):
    """The source of a value: `config_source` in DescribeConfigs v1+."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class ConfigType(ExtensibleCode):
    """The type of a value: `config_type` in DescribeConfigs v3+; UNKNOWN in older versions."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOpType(IntEnum):
    """The operation of one change: `config_operation` in IncrementalAlterConfigs.

    APPEND and SUBTRACT are only for lists.
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
