"""Message layouts: dataclasses with `wire(...)` on each field.

The dataclass is the table. A field names its type, the versions that have it, the versions in which
it may be null, and its tag if it is a tagged field; its default is Kafka's. Fields are in wire
order. `generate` turns the table of one version into straight-line code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

_MISSING: Final = object()
_METADATA_KEY: Final = "wire"


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts. `code` is its struct format if the size is fixed, else None."""

    name: str
    code: str | None
    size: int
    zero: Any


BOOL: Final = Primitive("bool", "?", 1, False)
INT8: Final = Primitive("int8", "b", 1, 0)
INT16: Final = Primitive("int16", "h", 2, 0)
UINT16: Final = Primitive("uint16", "H", 2, 0)
INT32: Final = Primitive("int32", "i", 4, 0)
INT64: Final = Primitive("int64", "q", 8, 0)
FLOAT64: Final = Primitive("float64", "d", 8, 0.0)
UUID: Final = Primitive("uuid", "16s", 16, bytes(16))  # raw bytes here, base64 in JSON
STRING: Final = Primitive("string", None, 0, "")
BYTES: Final = Primitive("bytes", None, 0, b"")
RECORDS: Final = Primitive("records", None, 0, None)  # nullable bytes, not parsed


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a primitive or a struct."""

    of: Primitive | type[Any]


WireType = Primitive | Array | type[Any]


class FixedList(list[Any]):
    """An array of structs that never changes, encoded once per version. Many messages share it."""

    def __init__(self, elements: Iterable[Any]) -> None:
        super().__init__(elements)
        self._encoded: dict[Callable[[Any, bytearray], None], bytes] = {}  # one for each version
        self._converted: dict[Callable[[FixedList], Any], Any] = {}

    def encoded(self, encode: Callable[[Any, bytearray], None]) -> bytes:
        """Return the elements as bytes; `encode` appends one element to a bytearray."""
        if encode not in self._encoded:
            out = bytearray()
            for element in self:
                encode(element, out)
            self._encoded[encode] = bytes(out)
        return self._encoded[encode]

    def converted(self, convert: Callable[[FixedList], Any]) -> Any:
        """Return `convert(self)`, which is computed once for each function."""
        if convert not in self._converted:
            self._converted[convert] = convert(self)
        return self._converted[convert]


@dataclass(frozen=True, slots=True)
class Versions:
    """A set of versions."""

    ranges: tuple[range, ...]

    def __contains__(self, version: object) -> bool:
        return any(version in span for span in self.ranges)


@dataclass(frozen=True, slots=True)
class Wire:
    """One field on the wire."""

    name: str
    json_name: str
    type: WireType
    versions: Container[int]
    nullable: Container[int]
    tag: int | None
    default: Any


_VERSION_MAX: Final = 1 << 15
_EVERY: Final = Versions((range(_VERSION_MAX),))
_NONE: Final = Versions(())


def _versions(text: str | None, absent: Container[int]) -> Container[int]:
    """Parse versions such as "3+", "8-10" or "4"; a comma separates several, as in "2,5+"."""
    if text is None:
        return absent
    return Versions(tuple(map(_range, text.split(","))))


def _range(text: str) -> range:
    if text.endswith("+"):
        return range(int(text[:-1]), _VERSION_MAX)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def wire(
    type: WireType,
    *,
    versions: str | None = None,
    nullable: str | None = None,
    tag: int | None = None,
    default: Any = _MISSING,
    json: str | None = None,
) -> Any:
    """Describe a field; see `Wire`. `default` is the type's zero unless given."""
    metadata = {_METADATA_KEY: (type, versions, nullable, tag, json)}
    if default is not _MISSING:
        return dataclasses.field(default=default, metadata=metadata)
    if isinstance(type, Array):
        return dataclasses.field(default_factory=list, metadata=metadata)
    if isinstance(type, Primitive):
        return dataclasses.field(default=type.zero, metadata=metadata)
    return dataclasses.field(default_factory=type, metadata=metadata)


def fields_of(struct: type[Any]) -> tuple[Wire, ...]:
    """Return the table of a message or struct, in wire order."""
    table = []
    for field in dataclasses.fields(struct):
        kind, versions, nullable, tag, json = field.metadata[_METADATA_KEY]
        default = field.default
        if default is dataclasses.MISSING:
            assert field.default_factory is not dataclasses.MISSING
            default = field.default_factory()
        table.append(
            Wire(
                field.name,
                json or _camel(field.name),
                kind,
                _versions(versions, _EVERY),
                _versions(nullable, _NONE),
                tag,
                default,
            )
        )
    return tuple(table)


# By struct: the name of each of its arrays, and whether its elements are structs.
_arrays: Final[dict[type[Any], tuple[tuple[str, bool], ...]]] = {}


def _arrays_of(struct: type[Any]) -> tuple[tuple[str, bool], ...]:
    arrays = _arrays.get(struct)
    if arrays is None:
        arrays = _arrays[struct] = tuple(
            (field.name, not isinstance(field.type.of, Primitive))
            for field in fields_of(struct)
            if isinstance(field.type, Array)
        )
    return arrays


def has_more_elements(message: Any, limit: int) -> bool:
    """Return whether all arrays of a message together have more elements than `limit`.

    It does not take longer for a message with more of them.
    """
    structs, count = [message], 0
    while structs:
        struct = structs.pop()
        for name, holds_structs in _arrays_of(type(struct)):
            elements = getattr(struct, name)
            if not elements:
                continue
            count += len(elements)
            if count > limit:
                return True
            if holds_structs:
                structs += elements
    return False


def free_elements(message: Any) -> Iterator[None]:
    """Remove the elements of a message's arrays one by one, with a yield after each.

    A message that is dropped as a whole frees all of its elements at once. Arrays in elements are
    left alone, because other messages may share them.
    """
    for name, _ in _arrays_of(type(message)):
        elements = getattr(message, name)
        while type(elements) is list and elements:
            elements.pop()
            yield


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)
