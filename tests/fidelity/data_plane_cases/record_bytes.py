"""Records for Produce requests: of each format and codec, and damaged ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from data_plane.records.batch import assemble, encode_batch, parse_header
from data_plane.records.compression import Codec
from data_plane.records.message_sets import encode_message_set
from data_plane.records.record import NewRecord, Record
from tests.fidelity.data_plane_cases.steps import TIME_MS

HEADER_BYTES: Final = 61


def batch(*values: bytes | None, time_ms: int = TIME_MS, **fields: Any) -> bytes:
    """Return a batch of format 2; record `n` has the time `time_ms + n` and the key `k`.

    `fields` are further arguments of `encode_batch`.
    """
    records = [
        NewRecord(time_ms + at, b"k", value, ((b"h", b"1"),) if at else ())
        for at, value in enumerate(values or (b"v",))
    ]
    return encode_batch(records, **fields)


def without_key(time_ms: int = TIME_MS) -> bytes:
    """Return a batch of three records; the second one has no key."""
    keys = (b"a", None, b"b")
    return encode_batch([NewRecord(time_ms, key, b"v") for key in keys])


def set_of(magic: int, *values: bytes, codec: Codec = Codec.NONE) -> bytes:
    """Return a message set of format 0 or 1."""
    records = [Record(at, TIME_MS + at, b"k", value) for at, value in enumerate(values or (b"v",))]
    return encode_message_set(records, magic, codec)


def changed(data: bytes, *, body: bytes | None = None, **fields: int) -> bytes:
    """Return a batch with changed header fields or another body, and with the matching checksum."""
    header = parse_header(data)._replace(**fields)
    return assemble(header, data[HEADER_BYTES:] if body is None else body)


def flipped(data: bytes, at: int) -> bytes:
    """Return the data with one byte changed."""
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


_GOOD: Final = batch(b"v", b"w")
# Null is missing here: Kafka never answers a Produce request that has null instead of records.
DAMAGED: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "empty": b"",
        "truncated": _GOOD[:-1],
        "shorter than a prefix": _GOOD[:10],
        "checksum": flipped(_GOOD, 20),
        "body": flipped(_GOOD, len(_GOOD) - 1),
        "format 3": flipped(_GOOD, 16)[:16] + b"\x03" + _GOOD[17:],
        "format -1": _GOOD[:16] + b"\xff" + _GOOD[17:],
        "length 0": _GOOD[:8] + bytes(4) + _GOOD[12:],
        "negative length": _GOOD[:8] + b"\xff\xff\xff\xff" + _GOOD[12:],
        "two batches": _GOOD + _GOOD,
        "bytes after it": _GOOD + b"xyz",
        "first offset 5": changed(_GOOD, base_offset=5),
        "last offset delta 0": changed(_GOOD, last_offset_delta=0),
        "last offset delta 7": changed(_GOOD, last_offset_delta=7),
        "no records": changed(_GOOD, record_count=0, body=b""),
        "more records than there are": changed(_GOOD, record_count=3),
        "fewer records than there are": changed(_GOOD, record_count=1),
        "negative count": changed(_GOOD, record_count=-1),
        "control": changed(_GOOD, attributes=0x20),
        "transactional": changed(_GOOD, attributes=0x10),
        "unknown codec": changed(_GOOD, attributes=5),
        "not gzip": changed(_GOOD, attributes=1),
        "log append time": changed(_GOOD, attributes=8),
        "unused attribute": changed(_GOOD, attributes=0x100),
        "producer without sequence": changed(_GOOD, producer_id=5, producer_epoch=0),
        "producer without epoch": changed(_GOOD, producer_id=5, base_sequence=0),
        "negative timestamp": changed(_GOOD, base_timestamp=-2),
        "max timestamp too low": changed(_GOOD, max_timestamp=TIME_MS - 5),
        "leader epoch 9": changed(_GOOD, leader_epoch=9),
        "no value": batch(None),
    }
)
# Message sets of the older formats, damaged and whole.
OLD: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "format 0": set_of(0, b"a", b"b"),
        "format 1": set_of(1, b"a", b"b"),
        "format 0, gzip": set_of(0, b"a", b"b", codec=Codec.GZIP),
        "format 1, gzip": set_of(1, b"a", b"b", codec=Codec.GZIP),
        "format 1, snappy": set_of(1, b"a", b"b", codec=Codec.SNAPPY),
        "format 1, lz4": set_of(1, b"a", b"b", codec=Codec.LZ4),
        "format 1, two wrappers": set_of(1, b"a", codec=Codec.GZIP) * 2,
        "format 0, checksum": flipped(set_of(0, b"a"), 13),
        "format 1, checksum": flipped(set_of(1, b"a"), 13),
        "format 1, value": flipped(set_of(1, b"a"), len(set_of(1, b"a")) - 1),
        "format 1, truncated": set_of(1, b"a", b"b")[:-1],
        "formats 0 and 1": set_of(0, b"a") + set_of(1, b"b"),
        "formats 1 and 2": set_of(1, b"a") + _GOOD,
    }
)
