"""Structure-aware mutations: they replace, drop, repeat or swap fields, or write wrong lengths.

The corpus is the attacker's own requests. One seed determines every frame.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tests.hostile.requests import HARMLESS, READS, WRITES
from tests.hostile.wire import TAGS, Field, Fields, head, joined, varint

_BOUNDARIES: Final = (
    *(0, 1, -1, 2, 127, 128, -128, 255, 2**15 - 1, -(2**15)),
    *(2**31 - 1, -(2**31), 2**63 - 1),
)
_TEXTS: Final = (
    *(b"", b"\0", b"*", b"..", b"\xff\xfe", b"treasure", b"alice-x", b"User:admin"),
    *(b"kafka-cluster", "\u2028\U0001f512".encode(), b"\xed\xa0\x80", b"%s%n", b"A" * 300),
)
_HEADER_FIELDS: Final = 5  # API key, version, correlation id, client id with its length
# The share of frames whose length prefix is wrong; all others have the right one.
_WRONG_LENGTHS: Final = 0.03


class Frame(NamedTuple):
    """Bytes to send. If their length prefix is wrong, a response is not required."""

    data: bytes
    has_wrong_length: bool


def _integer(source: random.Random, size: int) -> bytes:
    value = source.choice((*_BOUNDARIES, source.getrandbits(size * 8)))
    return (value & (1 << size * 8) - 1).to_bytes(size, "big")


def _length(data: bytes, size: int) -> bytes:
    """Return a text's length in `size` bytes, or as a compact varint if `size` is not 2 or 4."""
    if size in (2, 4):
        return len(data).to_bytes(size, "big")
    return varint(len(data) + 1)


def _value(fields: list[Field], source: random.Random) -> None:
    """Replace a number, or a text and its length, so that the request stays well-formed."""
    places = [at for at, field in enumerate(fields) if at > 1 and field.kind in ("int", "text")]
    if not places:
        return
    at = source.choice(places)
    kind, data = fields[at]
    if kind == "int":
        fields[at] = Field(kind, _integer(source, len(data)))
        return
    new = source.choice(_TEXTS)
    fields[at] = Field(kind, new)
    if fields[at - 1].kind == "length":
        fields[at - 1] = Field("length", _length(new, len(fields[at - 1].data)))


def _structure(fields: list[Field], source: random.Random) -> None:
    """Replace one field by a wrong value; it may be a length or the tagged fields."""
    at = source.randrange(len(fields))
    kind, data = fields[at]
    if kind == "tags":
        new = source.choice((b"\1\0\1x", b"\xff\xff\xff\xff\x0f", b"\2\0\0\0\0"))
    else:
        new = _integer(source, min(max(len(data), 1), 8))
    fields[at] = Field(kind, new)


def _drop(fields: list[Field], source: random.Random) -> None:
    del fields[source.randrange(len(fields))]


def _double(fields: list[Field], source: random.Random) -> None:
    at = source.randrange(len(fields))
    fields.insert(at, fields[at])


def _swap(fields: list[Field], source: random.Random) -> None:
    a, b = source.randrange(len(fields)), source.randrange(len(fields))
    fields[a], fields[b] = fields[b], fields[a]


def _flip(fields: list[Field], source: random.Random) -> None:
    at = source.randrange(len(fields))
    data = bytearray(fields[at].data)
    if data:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        fields[at] = Field(fields[at].kind, bytes(data))


def _grow(fields: list[Field], source: random.Random) -> None:
    at = source.randrange(len(fields) + 1)
    fields.insert(at, Field("text", source.randbytes(source.randrange(1, 64))))


def _cut(fields: list[Field], source: random.Random) -> None:
    del fields[source.randrange(1, len(fields) + 1) :]


def _many(fields: list[Field], source: random.Random) -> None:
    """Repeat several fields, so that nested arrays have more elements than their lengths say."""
    a = source.randrange(len(fields))
    b = min(len(fields), a + source.randrange(1, 6))
    fields[b:b] = fields[a:b] * source.randrange(2, 30)


MUTATIONS: Final[tuple[Callable[[list[Field], random.Random], None], ...]] = (
    *(_value,) * 16, _structure, _structure, _drop, _double, _swap, _flip, _grow, _cut, _many,
)  # fmt: skip


class Mutator:
    """An endless source of frames. The seed determines them."""

    def __init__(self, seed: int, corpus: Sequence[Fields] = ()) -> None:
        """`corpus` replaces the requests of Kafka's protocol."""
        self._source = random.Random(seed)
        default_corpus = [request.fields() for request in (*WRITES, *READS, *HARMLESS)]
        self._corpus = corpus or default_corpus

    def frames(self, count: int) -> Iterator[Frame]:
        return (self.frame() for _ in range(count))

    def frame(self) -> Frame:
        source = self._source
        fields = list(source.choice(self._corpus))
        if source.random() < 0.05:  # the body of another request after this header
            fields[_HEADER_FIELDS:] = source.choice(self._corpus)[_HEADER_FIELDS:]
        if source.random() < 0.08:
            self._another_version(fields)
        for _ in range(source.choice((1, 1, 1, 2, 3, 8))):
            if fields:
                source.choice(MUTATIONS)(fields, source)
        payload = joined(fields)
        if source.random() < _WRONG_LENGTHS:
            claimed = (len(payload) + source.choice((-7, -1, 1, 99, 2**20, 2**30))) & 0xFFFFFFFF
            return Frame(struct.pack(">I", claimed) + payload, has_wrong_length=True)
        return Frame(struct.pack(">I", len(payload)) + payload, has_wrong_length=False)

    def unframed(self) -> Frame:
        """Return a mutated message of another protocol, without Kafka's length prefix."""
        fields = list(self._source.choice(self._corpus))
        for _ in range(self._source.choice((1, 1, 1, 2, 3, 8))):
            if fields:
                self._source.choice(MUTATIONS)(fields, self._source)
        return Frame(joined(fields), has_wrong_length=False)

    def _another_version(self, fields: list[Field]) -> None:
        source = self._source
        flexible = source.random() < 0.5
        new = head(source.randrange(-2, 76), source.randrange(-1, 14), flexible=flexible)
        fields[: len(new)] = new
        if flexible and source.random() < 0.5:
            fields.append(TAGS)
