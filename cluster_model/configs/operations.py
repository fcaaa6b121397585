"""The operations of IncrementalAlterConfigs on stored configs (docs/kafka/configs.md).

The receiving broker applies them to validate a change of a BROKER resource; the controller applies
them to decide the change. In the drafted dialect the controller also makes the receiving broker's
checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bridgehead.kafka_wire.config_codes import AlterConfigOpType, ConfigType
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.configs.types import ConfigKey


class Operation(NamedTuple):
    """One change. `type` may be an unknown number; `value` may be null for DELETE."""

    name: str
    type: int
    value: str | None


def check_shape(operations: Sequence[Operation]) -> None:
    """Raise ApiError for a duplicate config, or for a null value unless the operation is DELETE."""
    if len({operation.name for operation in operations}) < len(operations):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        name
        for name, operation_type, value in operations
        if value is None and operation_type != AlterConfigOpType.DELETE
    ]
    if nulls:
        text = f"Null value not supported for : {', '.join(nulls)}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)


def check_operation_types(operations: Iterable[Operation]) -> None:
    """Raise ApiError for an unknown type. Kafka makes this check only for BROKER resources."""
    for operation in operations:
        if operation.type not in frozenset(AlterConfigOpType):
            text = f"Unknown operations type {operation.type}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)


def apply_operations(
    stored: Mapping[str, str],
    operations: Iterable[Operation],
    key_of: Callable[[str], ConfigKey | None],
) -> dict[str, str]:
    """Return `stored` with the operations applied; raises ApiError.

    An unknown operation type, or APPEND or SUBTRACT of a custom name, raises UNKNOWN_SERVER_ERROR,
    because Kafka fails with an unexpected exception.
    """
    configs = dict(stored)
    for name, operation, value in operations:
        match operation:
            case AlterConfigOpType.SET:
                configs[name] = value or ""
            case AlterConfigOpType.DELETE:
                configs.pop(name, None)
            case AlterConfigOpType.APPEND | AlterConfigOpType.SUBTRACT:
                key = key_of(name)
                if key is None:
                    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
                if key.type is not ConfigType.LIST:
                    word = AlterConfigOpType(operation).name.lower()
                    text = f"Config value {word} is not allowed for config key: {name}"
                    raise ApiError(ErrorCode.INVALID_CONFIG, text)
                items = _items(configs.get(name, key.default or ""))
                change = _append if operation == AlterConfigOpType.APPEND else _subtract
                configs[name] = ",".join(change(items, _java_split(value or "")))
            case _:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return configs


def _append(items: list[str], new: list[str]) -> list[str]:
    """Append the items of `new` that `items` lacks; duplicates in `new` are kept, as in Kafka."""
    return items + [item for item in new if item not in items]


def _subtract(items: list[str], gone: list[str]) -> list[str]:
    """Remove one occurrence of each item in `gone`."""
    left = list(items)
    for item in gone:
        if item in left:
            left.remove(item)
    return left


def _items(text: str) -> list[str]:
    return _java_split(text) if text else []


def _java_split(text: str) -> list[str]:
    """Split at commas without trimming, and drop empty items at the end, as Java does."""
    items = text.split(",")
    if len(items) == 1:
        return items  # Java keeps an empty text that has no comma.
    while items and items[-1] == "":
        items.pop()
    return items
