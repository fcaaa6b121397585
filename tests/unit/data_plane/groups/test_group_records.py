"""The records of `__consumer_offsets`, byte by byte."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.primitives import WireError
from data_plane.groups.records import (
    GroupKey,
    GroupRecord,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_record,
)

MEMBER = MemberValue("c-1", None, "c", "/127.0.0.1", 60_000, 10_000, b"topics", b"partitions")
RECORDS = {
    "an offset": GroupRecord(OffsetKey("g", "t", 3), OffsetValue(5, 7, "m", 1234)),
    "an offset that expires": GroupRecord(OffsetKey("g", "t", 3), OffsetValue(5, -1, "", 12, 34)),
    "a removed offset": GroupRecord(OffsetKey("g", "t", 3), None),
    "a group": GroupRecord(GroupKey("g"), GroupValue("consumer", 3, "range", "c-1", 99, [MEMBER])),
    "an empty group": GroupRecord(GroupKey("g"), GroupValue("", 4, None, None, 99, [])),
    "a removed group": GroupRecord(GroupKey("g"), None),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_read_as_it_was_written(name: str) -> None:
    record = RECORDS[name]

    assert record == decode_record(*record.encode())


def test_offsets_are_written_in_the_versions_of_kafka_3_9() -> None:
    key, value = RECORDS["an offset"].encode()
    assert key == bytes.fromhex("0001 000167 000174 00000003")
    assert value == bytes.fromhex("0003 0000000000000005 00000007 00016d 00000000000004d2")

    _, value = RECORDS["an offset that expires"].encode()
    assert value == bytes.fromhex("0001 0000000000000005 0000 000000000000000c 0000000000000022"), (
        "only version 1 has the field for an expiry time"
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 0000000000000005 0000 0000000000000007", OffsetValue(5, -1, "", 7)),
        ("0002 0000000000000005 0000 0000000000000007", OffsetValue(5, -1, "", 7)),
        ("0004 0000000000000005 00000003 01 0000000000000007 00", OffsetValue(5, 3, "", 7)),
    ],
)
def test_every_version_of_an_offset_is_read(value: str, expected: OffsetValue) -> None:
    key = bytes.fromhex("0000 000167 000174 00000003")

    assert decode_record(key, bytes.fromhex(value)) == GroupRecord(OffsetKey("g", "t", 3), expected)


def test_a_group_of_version_0_has_its_session_timeout_as_rebalance_timeout() -> None:
    member = "0001 61 0001 63 0001 68 00001388 00000001 73 00000001 74"
    value = f"0000 0001 70 00000002 0001 72 0001 61 00000001 {member}"

    record = decode_record(bytes.fromhex("0002 000167"), bytes.fromhex(value))

    expected = MemberValue("a", None, "c", "h", 5000, 5000, b"s", b"t")
    assert record == GroupRecord(GroupKey("g"), GroupValue("p", 2, "r", "a", -1, [expected]))


def test_a_key_of_an_unknown_version_is_ignored() -> None:
    assert decode_record(bytes.fromhex("0003 000167"), b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", None),
        ("00", None),
        ("0002 0005 67", None),
        ("0002 000167", ""),
        ("0002 000167", "0005"),
        ("0002 000167", "0003 0001"),
        ("0001 000167 000174 00000003", "ffff"),
    ],
)
def test_damaged_records_are_reported(key: str, value: str | None) -> None:
    with pytest.raises(WireError):
        decode_record(bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def test_a_string_of_more_than_32767_bytes_is_an_error() -> None:
    with pytest.raises(WireError):
        GroupRecord(OffsetKey("g" * 40_000, "t", 0), None).encode()
