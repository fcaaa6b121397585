"""The broker configs of Kafka 3.9.1, and lookup by name.

A name may have a listener prefix (`listener.name.<listener>.<config>`); some SASL settings also
have a mechanism (`listener.name.<listener>.<mechanism>.<config>`). Such a name has the type and the
other properties of `<config>`. Every other name is custom: its type is unknown and its value is
never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cluster_model.configs.table import read_config_table
from cluster_model.configs.types import ConfigKey


class UpdateMode(Enum):
    """How a config can change while brokers run, if at all (docs/kafka/configs.md)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"  # for all brokers or for one
    DYNAMIC_ONLY = "dynamic-only"  # cluster-wide, and not in the properties file


@dataclass(frozen=True, slots=True)
class BrokerConfigKey(ConfigKey):
    """A row of broker_configs.tsv."""

    update_mode: UpdateMode


_ALL: Final = read_config_table(
    Path(__file__).with_name("broker_configs.tsv"),
    "update mode",
    lambda fields, mode: BrokerConfigKey(*fields, UpdateMode(mode)),
)
# In Kafka's order of definition, because Kafka reports the first bad value.
BROKER_CONFIGS: Final[Mapping[str, BrokerConfigKey]] = MappingProxyType(
    {n: key for n, key in _ALL.items() if key.update_mode is not UpdateMode.DYNAMIC_ONLY}
)
DYNAMIC_ONLY: Final[Mapping[str, BrokerConfigKey]] = MappingProxyType(
    {n: key for n, key in _ALL.items() if key.update_mode is UpdateMode.DYNAMIC_ONLY}
)

LISTENER_PREFIX: Final = re.compile(r"listener\.name\.([^.]*)\.(.*)")
# The name of a SASL mechanism can precede these settings.
MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
# The names in a group set the same value; the first name that is set is used.
_TIME_SYNONYMS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH_SYNONYMS: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


def base_name(name: str) -> str:
    """Return the name without its listener and mechanism."""
    prefixed = LISTENER_PREFIX.fullmatch(name)
    if prefixed is None:
        return name
    base = prefixed[2]
    return next((config for config in MECHANISM_CONFIGS if base.endswith(config)), base)


def config_key(name: str) -> BrokerConfigKey | None:
    """Return the row for a name; None for a custom name."""
    return _ALL.get(name) or BROKER_CONFIGS.get(base_name(name))


def synonym_names(name: str, *, of_listener: bool = True) -> tuple[str, ...]:
    """Return the names that can supply a config's value, in order of precedence.

    With `of_listener`, a name with a listener prefix is followed by the name without it.
    """
    for group in _TIME_SYNONYMS:
        if name in group:
            return group
    if name == _FLUSH_SYNONYMS[0]:
        return _FLUSH_SYNONYMS
    base = base_name(name)
    return (name, base) if of_listener and base != name else (name,)


def read_only(name: str) -> bool:
    """Return whether DescribeConfigs marks a name as read-only.

    Custom, prefixed and dynamic-only configs can change, but Kafka marks them as read-only.
    """
    key = BROKER_CONFIGS.get(name)
    return key is None or key.update_mode is UpdateMode.READ_ONLY
