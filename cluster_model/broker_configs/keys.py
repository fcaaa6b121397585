"""What one row of the broker config tables says, and the short words the tables use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from cluster_model.config_types import ConfigKey, ConfigType, MinusOneOr, Validator


class Scope(Enum):
    """Where a config may be changed while the broker runs (kafka-semantics 7.5)."""

    READ_ONLY = auto()
    PER_BROKER = auto()
    CLUSTER_WIDE = auto()  # As the default of all brokers, or for one.


@dataclass(frozen=True, slots=True)
class BrokerConfigKey(ConfigKey):
    """A broker config."""

    scope: Scope

    @classmethod
    def row(
        cls,
        name: str,
        config_type: ConfigType,
        default: str | None,
        scope: Scope,
        documentation: str,
        validator: Validator | None = None,
    ) -> BrokerConfigKey:
        """Return a row, its columns in the order in which a reader wants them."""
        return cls(name, config_type, default, validator, documentation, scope)


row: Final = BrokerConfigKey.row

READ_ONLY: Final = Scope.READ_ONLY
PER_BROKER: Final = Scope.PER_BROKER
CLUSTER_WIDE: Final = Scope.CLUSTER_WIDE

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD

GZIP_LEVEL: Final = MinusOneOr(1, 9, "Value must be between 1 and 9 or equal to -1")
POOL_SIZE: Final = MinusOneOr(1, 2**31 - 1, "Value can be -1 or greater than 0")
