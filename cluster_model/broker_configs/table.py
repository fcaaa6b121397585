"""All broker configs in one registry, and how a name finds its row.

A name may be said per listener (`listener.name.<listener>.<config>`), and for some SASL settings
per mechanism within it (`listener.name.<listener>.<mechanism>.<config>`); it then has the row of
the config it ends in. Three configs exist only dynamically. Any other name is custom: its type is
unknown and its value is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_model.broker_configs.groups import GROUPS
from cluster_model.broker_configs.keys import CLUSTER_WIDE, LONG, BrokerConfigKey, Scope, row
from cluster_model.broker_configs.logs import LOGS
from cluster_model.broker_configs.metrics_and_quotas import METRICS_AND_QUOTAS
from cluster_model.broker_configs.network import NETWORK
from cluster_model.broker_configs.order import ANSWER_ORDER, VALIDATION_ORDER
from cluster_model.broker_configs.quorum import QUORUM
from cluster_model.broker_configs.replication import REPLICATION
from cluster_model.broker_configs.security import SECURITY
from cluster_model.broker_configs.tiered_storage import TIERED_STORAGE
from cluster_model.broker_configs.transactions import TRANSACTIONS
from cluster_model.config_types import at_least

BROKER_CONFIGS: Final[Mapping[str, BrokerConfigKey]] = MappingProxyType(
    {
        key.name: key
        for key in (
            *TIERED_STORAGE,
            *LOGS,
            *GROUPS,
            *TRANSACTIONS,
            *SECURITY,
            *QUORUM,
            *REPLICATION,
            *METRICS_AND_QUOTAS,
            *NETWORK,
        )
    }
)
assert len(ANSWER_ORDER) == len(BROKER_CONFIGS) == len(VALIDATION_ORDER)

_LONG_MAX: Final = str(2**63 - 1)
DYNAMIC_ONLY: Final[Mapping[str, BrokerConfigKey]] = MappingProxyType(
    {
        key.name: key
        for key in (
            row(
                "leader.replication.throttled.rate",
                LONG,
                _LONG_MAX,
                CLUSTER_WIDE,
                "Bytes per second a leader sends to throttled followers.",
                at_least(0),
            ),
            row(
                "follower.replication.throttled.rate",
                LONG,
                _LONG_MAX,
                CLUSTER_WIDE,
                "Bytes per second a throttled follower fetches.",
                at_least(0),
            ),
            row(
                "replica.alter.log.dirs.io.max.bytes.per.second",
                LONG,
                _LONG_MAX,
                CLUSTER_WIDE,
                "Bytes per second moved between directories.",
                at_least(0),
            ),
        )
    }
)

LISTENER_PREFIX: Final = re.compile(r"listener\.name\.([^.]*)\.(.*)")
# Settings of one SASL mechanism: the mechanism stands between listener and name.
MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
# Names that supply one value together, the first that is set wins.
_TIME_SYNONYMS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH_SYNONYMS: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


def base_name(name: str) -> str:
    """Return the config that a name ends in, without listener and mechanism."""
    prefixed = LISTENER_PREFIX.fullmatch(name)
    if prefixed is None:
        return name
    base = prefixed[2]
    return next((config for config in MECHANISM_CONFIGS if base.endswith(config)), base)


def config_key(name: str) -> BrokerConfigKey | None:
    """Return the row of a name; None for a custom name."""
    if name in DYNAMIC_ONLY:
        return DYNAMIC_ONLY[name]
    return BROKER_CONFIGS.get(name) or BROKER_CONFIGS.get(base_name(name))


def synonym_names(name: str, *, of_listener: bool = True) -> tuple[str, ...]:
    """Return the names that can supply a config's value, the winner first.

    With `of_listener` a name with a listener's prefix also has its unprefixed one.
    """
    for group in _TIME_SYNONYMS:
        if name in group:
            return group
    if name == _FLUSH_SYNONYMS[0]:
        return _FLUSH_SYNONYMS
    base = base_name(name)
    return (name, base) if of_listener and base != name else (name,)


def read_only(name: str) -> bool:
    """Tell whether DescribeConfigs shows a name as not changeable.

    Custom, prefixed and dynamic-only names are changeable, and yet shown so (recorded live).
    """
    key = BROKER_CONFIGS.get(name)
    return key is None or key.scope is Scope.READ_ONLY
