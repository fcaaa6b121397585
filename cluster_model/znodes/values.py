"""The checks of every value that comes out of ZooKeeper, before it becomes part of the model.

Other programs write to ZooKeeper too, and JSON allows values that Kafka's messages cannot carry.
Decoders of znodes use these functions only, so that whatever they return can be encoded, compared
and counted. As in Kafka's decoders, a number is not accepted where a string is expected, nor a
string where a number is expected. Errors do not show values, which may be secret: configs contain
keys and credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
# Lengths of strings are INT16 in the older versions of Kafka's messages.
TEXT_BYTES_MAX: Final = 32_767
# Contents and names may be long; an error shows their beginning.
_SHOWN_MAX: Final = 200
_ERROR_MAX: Final = 500


class ZnodeContentError(Exception):
    """The content or the name of a znode is invalid. The text begins with the path."""

    def __init__(self, text: str) -> None:
        super().__init__(shortened(text, _ERROR_MAX))


def shortened(text: str, most: int = _SHOWN_MAX) -> str:
    """Return the beginning of a text if the text is long."""
    return text if len(text) <= most else f"{text[:most]}..."


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Convert the exceptions of decoding into ZnodeContentError with the path.

    An error that already has a path is not changed.
    """
    try:
        yield
    except KeyError as error:
        raise ZnodeContentError(f"{shortened(path)}: {error} is missing or unknown") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise ZnodeContentError(f"{shortened(path)}: {error}") from None


def json_object(data: bytes | None, path: str) -> dict[str, Any]:
    """Return a JSON object. Raises ZnodeContentError."""
    with decoding(path):
        value = orjson.loads(data or b"")
        if not isinstance(value, dict):
            raise TypeError("not a JSON object")
    return value


def int32(value: Any, least: int = 0) -> int:
    """Return a whole number from `least` to 2³¹-1. Raises ValueError."""
    return _whole(value, least, INT32_MAX)


def int64(value: Any, least: int = 0) -> int:
    """Return a whole number from `least` to 2⁶³-1. Raises ValueError."""
    return _whole(value, least, INT64_MAX)


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{_kind(value)} instead of a whole number from {least} to {most}")
    return value


def string(value: Any) -> str:
    """Return a string of any length. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{_kind(value)} instead of a string")
    return value


def text(value: Any) -> str:
    """Return a string that every version of a message can carry. Raises ValueError."""
    word = string(value)
    if len(word.encode()) > TEXT_BYTES_MAX:
        raise ValueError(f"a string of more than {TEXT_BYTES_MAX} bytes")
    return word


def decimal(digits: str | bytes, most: int = INT64_MAX) -> int:
    """Return the number that ASCII digits spell, at most `most`. Raises ValueError.

    Digits have any number of leading zeros, but 20 digits suffice for 64 bits.
    """
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20 and int(digits) <= most):
        raise ValueError(f"not the digits of a number from 0 to {most}")
    return int(digits)


def number_of(name: str) -> int | None:
    """Return the number that a znode's name is; None if the name is not a number of 31 bits.

    Only the decimal form without leading zeros names a number: any other name is another znode.
    """
    try:
        number = decimal(name, INT32_MAX)
    except ValueError:
        return None
    return number if str(number) == name else None


def object_of(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for null. Raises TypeError."""
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{_kind(value)} instead of an object")
    return value or {}


def list_of(value: Any) -> list[Any]:
    """Return a JSON array. Raises TypeError."""
    if not isinstance(value, list):
        raise TypeError(f"{_kind(value)} instead of an array")
    return value


def _kind(value: Any) -> str:
    """Return what a JSON value is."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
