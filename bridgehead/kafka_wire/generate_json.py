"""Generates functions from message to JSON values, one for each struct and version.

The request log writes every request and response. Interpreting the field tables of the message
classes (`schema.py`) for each of them would be ten times slower. Names and their order are the
same as in Kafka's own converters.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from bridgehead.kafka_wire.schema import (
    BYTES,
    FLOAT64,
    RECORDS,
    UUID,
    Array,
    FixedList,
    Wire,
    WireType,
    fields_of,
)

HIDDEN: Final = "[hidden]"
ToJson = Callable[[Any], dict[str, Any]]
# For each struct, the names of its fields with secret values.
Secrets = Mapping[type[Any], Set[str]]


class JsonGenerator:
    """The functions of one version. Secrets become `HIDDEN`, as in Kafka.

    `double` converts floating-point numbers, which Java formats differently. `fixed` converts
    the JSON of a FixedList; the list keeps the result for later messages.
    """

    def __init__(
        self,
        version: int,
        secrets: Secrets | None = None,
        double: Callable[[float], Any] | None = None,
        fixed: Callable[[list[dict[str, Any]]], Any] = lambda rows: rows,
    ) -> None:
        self._version = version
        self._secrets = secrets or {}
        self._double = double
        self._fixed = fixed
        self._functions: dict[type[Any], ToJson] = {}

    def function(self, target: type[Any]) -> ToJson:
        """Return `to_json(message) -> dict` for one struct."""
        if target not in self._functions:
            self._functions[target] = self._build(target)
        return self._functions[target]

    def _build(self, target: type[Any]) -> ToJson:
        names: dict[str, Any] = {
            "uuid": _uuid,
            "base64": _base64,
            "double": self._double,
            "HIDDEN": HIDDEN,
        }
        lines = ["def to_json(m):", "    body = {}"]
        for number, field in enumerate(fields_of(target)):
            if self._version not in field.versions:
                continue
            value = self._value(target, field, f"m.{field.name}", names)
            if value.startswith("m.") or not self._may_be_null(field):
                step = f"body[{field.json_name!r}] = {value}"
            else:
                step = f"body[{field.json_name!r}] = None if m.{field.name} is None else {value}"
            if field.tag is not None:
                names[f"default_{number}"] = field.default
                lines.append(f"    if m.{field.name} != default_{number}:")
                step = "    " + step
            lines.append("    " + step)
        lines.append("    return body")
        # The source is built from our own tables only; no input ever reaches it.
        exec("\n".join(lines), names)  # noqa: S102
        function: ToJson = names["to_json"]
        return function

    def _may_be_null(self, field: Wire) -> bool:
        return self._version in field.nullable or field.type is RECORDS

    def _value(self, target: type[Any], field: Wire, of: str, names: dict[str, Any]) -> str:
        # A drafted class that extends a shipped class inherits its secrets.
        if any(field.name in self._secrets.get(base, ()) for base in target.__mro__):
            return "HIDDEN"
        return self._expression(field.type, of, names)

    def _expression(self, kind: WireType, of: str, names: dict[str, Any]) -> str:
        if isinstance(kind, Array):
            expression = self._expression(kind.of, "e", names)
            rows = of if expression == "e" else f"[{expression} for e in {of}]"
            if not isinstance(kind.of, type):
                return rows
            names["FixedList"] = FixedList
            convert = f"fixed_{kind.of.__name__}"
            names[convert] = self._fixed_array(self.function(kind.of))
            return f"({of}.converted({convert}) if type({of}) is FixedList else {rows})"
        if isinstance(kind, type):
            name = f"to_json_{kind.__name__}"
            names[name] = self.function(kind)
            return f"{name}({of})"
        if kind is UUID:
            return f"uuid({of})"
        if kind is BYTES or kind is RECORDS:
            return f"base64({of})"
        if kind is FLOAT64 and self._double is not None:
            return f"double({of})"
        return of

    def _fixed_array(self, to_json: ToJson) -> Callable[[FixedList], Any]:
        return lambda elements: self._fixed([to_json(element) for element in elements])


def _uuid(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
