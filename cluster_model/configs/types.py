"""Kafka's config types: parsing, rendering and validation (docs/kafka/configs.md#validation).

Error texts are Kafka's. They show the original text when parsing fails, and the parsed value when
a validator rejects it. Parsed values are bool, str, int, float, tuple of str, or None. Java's rules
apply: characters up to U+0020 are trimmed, and integers may use the decimal digits of any script.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from bridgehead.kafka_wire.config_codes import ConfigSource, ConfigType
from bridgehead.kafka_wire.java_order import java_hash
from cluster_model.inter_broker_protocol import level_of

ConfigValue = bool | str | int | float | tuple[str, ...] | None


class ConfigException(Exception):
    """A value is invalid. `message` is Kafka's text, without the prefix that an API adds."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidConfigurationException(ConfigException):
    """A set of configs is invalid. AlterConfigs adds no prefix to this text."""


def invalid_value(name: str, shown: str, reason: str) -> ConfigException:
    """Return the exception for one value; `reason` is the part of the text after the colon."""
    return ConfigException(f"Invalid value {shown} for configuration {name}: {reason}")


_WHITESPACE: Final = "".join(map(chr, range(33)))  # Removed by Java's String.trim.
_BLANKS: Final = " \t\n\x0b\f\r"  # Java's \s
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_BITS: Final = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}


def parse(name: str, text: str, config_type: ConfigType) -> ConfigValue:
    """Return the parsed value; raises ConfigException with Kafka's text."""
    trimmed = text.strip(_WHITESPACE)
    match config_type:
        case ConfigType.BOOLEAN:
            if trimmed.lower() in ("true", "false"):
                return trimmed.lower() == "true"
            raise invalid_value(name, text, "Expected value to be either true or false")
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            limit = 1 << _BITS[config_type]
            if _INTEGER.fullmatch(trimmed) and len(trimmed) <= 40:
                number = int(trimmed)
                if -limit <= number < limit:
                    return number
            raise invalid_value(name, text, f"Not a number of type {config_type.name}")
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(trimmed):
                raise invalid_value(name, text, "Not a number of type DOUBLE")
            return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed)
        case ConfigType.LIST:
            # Unlike Java's split at `\s*,\s*`, this takes linear time for a long run of blanks.
            return tuple(part.strip(_BLANKS) for part in trimmed.split(",")) if trimmed else ()
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD | ConfigType.UNKNOWN:
            return trimmed


def render(value: ConfigValue) -> str | None:
    """Return a value as DescribeConfigs formats it; None stays None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return java_double_text(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def java_double_text(value: float) -> str:
    """Return a double as Java prints it: 0.5, 1.0E7, 1.7976931348623157E308."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{value:f}" if "e" in repr(value) else repr(value)
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        # Python writes 12345678.0 where Java writes 1.2345678E7.
        sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
        whole, _, fraction = digits.partition(".")
        if whole != "0":
            exponent = str(len(whole) - 1)
            digits = (whole + fraction).rstrip("0")
        else:
            digits = fraction.lstrip("0")
            exponent = str(len(digits) - len(fraction) - 1)
        mantissa = f"{sign}{digits[0]}.{digits[1:] or '0'}"
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _shown(value: ConfigValue) -> str:
    """Return a value as Kafka formats it in exception texts, where a list is in brackets."""
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(render(value))


# (name, value) -> None; raises ConfigException. Not called for null.
Validator = Callable[[str, ConfigValue], None]


@dataclass(frozen=True, slots=True)
class Range:
    """A number from `minimum` to `maximum`, both included. NaN is valid, as in Java."""

    minimum: float | None = None
    maximum: float | None = None

    def __call__(self, name: str, value: ConfigValue) -> None:
        assert isinstance(value, int | float)
        if self.minimum is not None and value < self.minimum:
            raise invalid_value(name, _shown(value), f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise invalid_value(name, _shown(value), f"Value must be no more than {self.maximum}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """A string, or each element of a list, must be one of `options`."""

    options: tuple[str, ...]

    def __call__(self, name: str, value: ConfigValue) -> None:
        for item in value if isinstance(value, tuple) else (str(value),):
            if item not in self.options:
                reason = f"String must be one of: {', '.join(self.options)}"
                raise invalid_value(name, item, reason)


@dataclass(frozen=True, slots=True)
class MinusOneOr:
    """-1 or a number in a range; `reason` is Kafka's text for other values."""

    minimum: int
    maximum: int
    reason: str

    def __call__(self, name: str, value: ConfigValue) -> None:
        assert isinstance(value, int)
        if value != -1 and not self.minimum <= value <= self.maximum:
            raise invalid_value(name, str(value), self.reason)


def non_empty_string(name: str, value: ConfigValue) -> None:
    """Reject an empty string."""
    if value == "":
        raise invalid_value(name, "", "String must be non-empty")


_THROTTLED: Final = re.compile(r"([0-9]+:[0-9]+)?")


def throttled_replicas(name: str, value: ConfigValue) -> None:
    """Accept `*` alone, or partition:broker pairs and empty elements."""
    assert isinstance(value, tuple)
    if value != ("*",) and not all(_THROTTLED.fullmatch(pair) for pair in value):
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise invalid_value(name, _shown(value), reason)


def metadata_version(name: str, value: ConfigValue) -> None:
    """Accept a Kafka version, such as 3.9-IV0, 3.9 or 2.8.1."""
    text = str(value)
    if level_of(text) is None:
        raise invalid_value(name, text, f"Version {text} is not a valid version")


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The definition of one config. `default` is text, as in a properties file, or null."""

    name: str
    type: ConfigType
    default: str | None
    validator: Validator | None
    documentation: str

    @property
    def sensitive(self) -> bool:
        """Whether DescribeConfigs returns null instead of the value."""
        return self.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)

    def parse(self, text: str | None) -> ConfigValue:
        """Return the validated value; raises ConfigException."""
        if text is None:
            return None
        value = parse(self.name, text, self.type)
        if self.validator is not None:
            self.validator(self.name, value)
        return value


@dataclass(frozen=True, slots=True)
class Synonym:
    """A possible source of a config value."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config as DescribeConfigs describes it, with all synonyms."""

    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool
    type: ConfigType
    read_only: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def in_properties_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of a small java.util.Properties.

    Kafka reports the first invalid config in this order, not in the order of the request.
    """
    codes = {name: java_hash(name) for name in names}
    return sorted(codes, key=lambda name: (codes[name] ^ codes[name] >> 16) & 15)
