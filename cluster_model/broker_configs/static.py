"""What a broker was told at start: its properties, judged once and then read by name.

Unknown names are kept, because plug-ins have names of their own. All errors are collected, so that
an operator mends a file once.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cluster_model.bridgehead_configs import bridgehead_config_errors
from cluster_model.broker_configs.order import VALIDATION_ORDER
from cluster_model.broker_configs.table import BROKER_CONFIGS, base_name, config_key
from cluster_model.config_types import ConfigException, ConfigValue


class InvalidBrokerConfigError(Exception):
    """A broker cannot start with these properties. `errors` are sentences, one per cause."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A broker's static configs. Build it with `from_properties`."""

    originals: Mapping[str, str]
    _values: Mapping[str, ConfigValue] = field(repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Judge and keep `properties`; raises InvalidBrokerConfigError with every error.

        `node.id` and `broker.id` are one number: who says one has said both.
        """
        originals = dict(properties)
        for name, twin in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if name in originals:
                originals.setdefault(twin, originals[name])
        values: dict[str, ConfigValue] = {}
        errors: list[str] = []
        for name in VALIDATION_ORDER:
            key = BROKER_CONFIGS[name]
            try:
                values[name] = key.parse(originals.get(name, key.default))
            except ConfigException as refusal:
                errors.append(refusal.message)
        for name in sorted(originals):
            if name not in BROKER_CONFIGS and (prefixed := config_key(name)) is not None:
                try:
                    values[name] = prefixed.parse(originals[name])
                except ConfigException as refusal:
                    errors.append(refusal.message)
        errors.extend(_ids_differ(values))
        errors.extend(bridgehead_config_errors(originals))
        if errors:
            raise InvalidBrokerConfigError(tuple(errors))
        return cls(MappingProxyType(originals), MappingProxyType(values))

    @property
    def broker_id(self) -> builtins.int:
        """This broker's id; -1 when none is set."""
        return self.int("broker.id")

    def value(self, name: str) -> ConfigValue:
        """Return the parsed value of a known config; a listener's falls back to the common one."""
        return self._values[name] if name in self._values else self._values[base_name(name)]

    def get_original(self, name: str) -> str | None:
        """Return what was said, unparsed; None when nothing was."""
        return self.originals.get(name)

    def boolean(self, name: str) -> bool:
        """Return a BOOLEAN."""
        value = self.value(name)
        assert isinstance(value, bool), name
        return value

    def int(self, name: str) -> builtins.int:
        """Return an INT or SHORT."""
        value = self.value(name)
        assert isinstance(value, builtins.int), name
        return value

    def long(self, name: str) -> builtins.int:
        """Return a LONG."""
        return self.int(name)

    def double(self, name: str) -> float:
        """Return a DOUBLE."""
        value = self.value(name)
        assert isinstance(value, float), name
        return value

    def string(self, name: str) -> str | None:
        """Return a STRING, CLASS or PASSWORD; None where it is null."""
        value = self.value(name)
        assert value is None or isinstance(value, str), name
        return value

    def list(self, name: str) -> tuple[str, ...]:
        """Return a LIST; empty where it is null."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), name
        return value or ()


def _ids_differ(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    broker_id, node_id = values.get("broker.id"), values.get("node.id")
    if broker_id == node_id:
        return ()
    return (f"broker.id is {broker_id} and node.id is {node_id}: they must be the same number",)
