"""The static configs of a broker: its properties file, validated at start-up.

Unknown names are allowed, because plug-ins may read them, but unknown `bridgehead.*` names are
errors. All errors are reported together.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cluster_model.configs.bridgehead_configs import bridgehead_config_errors
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS, base_name, config_key
from cluster_model.configs.types import ConfigException, ConfigValue

_DEFAULTS: Final = {name: key.parse(key.default) for name, key in BROKER_CONFIGS.items()}


class InvalidBrokerConfigError(Exception):
    """A broker cannot start with these properties. `errors` has one sentence per cause."""

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
        """Validate `properties`; raises InvalidBrokerConfigError with all errors.

        `node.id` and `broker.id` are the same number: setting one sets the other.
        """
        originals = dict(properties)
        for name, twin in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if name in originals:
                originals.setdefault(twin, originals[name])
        values = dict(_DEFAULTS)
        errors: list[str] = []
        for name, key in BROKER_CONFIGS.items():
            if name not in originals:
                continue
            try:
                values[name] = key.parse(originals[name])
            except ConfigException as error:
                errors.append(error.message)
                del values[name]
        for name in sorted(originals):
            if name not in BROKER_CONFIGS and (prefixed := config_key(name)) is not None:
                try:
                    values[name] = prefixed.parse(originals[name])
                except ConfigException as error:
                    errors.append(error.message)
        errors.extend(_ids_differ(values))
        errors.extend(_memory_is_too_small(values))
        errors.extend(bridgehead_config_errors(originals))
        if errors:
            raise InvalidBrokerConfigError(tuple(errors))
        return cls(MappingProxyType(originals), MappingProxyType(values))

    @property
    def broker_id(self) -> builtins.int:
        """This broker's id; -1 when it is not set."""
        return self.int("broker.id")

    def value(self, name: str) -> ConfigValue:
        """Return the parsed value; a name with a listener prefix falls back to its base name."""
        return self._values[name] if name in self._values else self._values[base_name(name)]

    def get_original(self, name: str) -> str | None:
        """Return the configured text, unparsed; None when it is not set."""
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
        """Return a STRING, CLASS or PASSWORD; None if it is null."""
        value = self.value(name)
        assert value is None or isinstance(value, str), name
        return value

    def list(self, name: str) -> tuple[str, ...]:
        """Return a LIST; empty if it is null."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), name
        return value or ()


def _ids_differ(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    broker_id, node_id = values.get("broker.id"), values.get("node.id")
    if broker_id == node_id:
        return ()
    return (f"broker.id is {broker_id} and node.id is {node_id}: they must be the same number",)


def _memory_is_too_small(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    memory, request = (
        values.get(name) for name in ("queued.max.request.bytes", "socket.request.max.bytes")
    )
    if not isinstance(memory, int) or not isinstance(request, int) or not 0 < memory < request:
        return ()
    return ("queued.max.request.bytes must be larger or equal to socket.request.max.bytes",)
