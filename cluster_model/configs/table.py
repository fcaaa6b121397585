"""Reads config tables: one TSV row per config, in Kafka's order of definition.

The column `valid values` uses the notation of Kafka's documentation: `[1,...]` and `[1,...,9]` are
ranges that include both ends; `[compact, delete]` lists the options. In the column `default`,
`null` means that there is no default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from bridgehead.kafka_wire.config_codes import ConfigType
from cluster_model.configs.types import (
    ConfigException,
    ConfigKey,
    MinusOneOr,
    OneOf,
    Range,
    Validator,
    metadata_version,
    non_empty_string,
    throttled_replicas,
)

Key = TypeVar("Key", bound=ConfigKey)
Fields = tuple[str, ConfigType, str | None, Validator | None, str]  # of ConfigKey, in its order

_VALIDATORS: Final[Mapping[str, Validator | None]] = {
    "": None,
    "non-empty string": non_empty_string,
    "metadata version": metadata_version,
    "* or partition:broker pairs": throttled_replicas,
    "-1 or [1,...]": MinusOneOr(1, 2**31 - 1, "Value can be -1 or greater than 0"),
    "-1 or [1,...,9]": MinusOneOr(1, 9, "Value must be between 1 and 9 or equal to -1"),
}
_RANGE: Final = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\]")
_OPTIONS: Final = re.compile(r"\[(\w+(?:, \w+)*)\]")


def read_config_table(
    path: Path, extra: str, make: Callable[[Fields, str], Key]
) -> Mapping[str, Key]:
    """Return the configs of a table by name, in the order of its rows.

    Args:
        path: the TSV file.
        extra: the name of the column that only this table has.
        make: builds a key from the fields of ConfigKey and the text in the extra column.

    Raises:
        ValueError: a malformed table; the message names the file and, unless the header is wrong,
            the line.
    """
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    columns = ("name", "type", "default", "valid values", extra, "documentation")
    if tuple(header.split("\t")) != columns:
        raise ValueError(f"{path.name}: the columns must be {', '.join(columns)}")
    keys: dict[str, Key] = {}
    for number, line in enumerate(lines, start=2):
        try:
            name, type_name, default, valid_values, more, documentation = line.split("\t")
            config_type = ConfigType[type_name.upper()]
            value = None if default == "null" else default
            key = make((name, config_type, value, _validator(valid_values), documentation), more)
            key.parse(key.default)
            if keys.setdefault(name, key) is not key:
                raise ValueError(f"{name} is defined twice")
        except (ValueError, KeyError, ConfigException) as error:
            raise ValueError(f"{path.name}, line {number}: {error!r}") from error
    return MappingProxyType(keys)


def _validator(valid_values: str) -> Validator | None:
    if match := _RANGE.fullmatch(valid_values):
        return Range(int(match[1]), None if match[2] is None else int(match[2]))
    if match := _OPTIONS.fullmatch(valid_values):
        return OneOf(tuple(match[1].split(", ")))
    return _VALIDATORS[valid_values]
