"""ZooKeeper's transaction log is decoded; damage is an error, a torn end is not."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from judge.transaction_log import TornLogError, Transaction, read_log, read_transactions

RECORDED = Path(__file__).parents[2] / "data" / "zookeeper_transactions.bin"
HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def _entry(zxid: int, kind: int, body: bytes) -> bytes:
    record = struct.pack(">qiqqi", 0x100000000000001, 7, zxid, 1_700_000_000_000, kind) + body
    return struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"


def _set(zxid: int) -> bytes:
    return _entry(zxid, 5, _text("/a") + _text(f"{zxid}") + struct.pack(">i", zxid))


def _write(folder: Path, data: bytes, name: str = "log.1") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _only(folder: Path, entry: bytes) -> Transaction:
    (transaction,) = read_log(_write(folder, HEADER + entry))
    return transaction


def _recorded() -> list[Transaction]:
    return list(read_log(RECORDED))


def test_recorded_log_is_read_to_its_end() -> None:
    zxids = [transaction.zxid for transaction in _recorded()]
    assert zxids == list(range(1, len(zxids) + 1))
    assert len(zxids) > 30


def test_recorded_multi_has_check_counter_outcomes_and_effects() -> None:
    """For a check, the log stores the znode's version plus one; the decoder subtracts one."""
    multi = next(
        t
        for t in _recorded()
        if any(o.kind == "create" and o.path == "/brokers/topics/orders" for o in t.operations)
    )
    assert multi.kind == "multi"
    assert not multi.failed
    first, second, third = multi.operations[:3]
    assert (first.kind, first.path, first.version) == ("check", "/controller_epoch", 1)
    assert (second.kind, second.path) == ("set", "/bridgehead/commit")
    assert (third.kind, third.path) == ("create", "/bridgehead/outcomes/0000000002")


def test_recorded_registration_is_ephemeral() -> None:
    created = {o.path: o.ephemeral for t in _recorded() for o in t.operations if o.kind == "create"}
    assert created["/brokers/ids/1"]
    assert not created["/brokers/topics/orders"]


def test_rejected_multi_is_failed(tmp_path: Path) -> None:
    body = struct.pack(">i", 2)
    for code in (-103, -2):
        body += struct.pack(">i", -1) + struct.pack(">i", 4) + struct.pack(">i", code)

    transaction = _only(tmp_path, _entry(1, 14, body))
    assert transaction.failed
    assert [operation.error for operation in transaction.operations] == [-103, -2]


def test_close_session_lists_the_deleted_znodes(tmp_path: Path) -> None:
    """An expired session deletes /controller this way."""
    body = struct.pack(">i", 1) + _text("/controller")
    transaction = _only(tmp_path, _entry(1, -11, body))
    assert transaction.kind == "close_session"
    assert [(o.kind, o.path) for o in transaction.operations] == [("delete", "/controller")]


def test_digest_after_a_record_is_ignored(tmp_path: Path) -> None:
    """ZooKeeper 3.6 and later append a digest of their tree."""
    body = _text("/a") + _text("x") + struct.pack(">i", 4) + struct.pack(">iq", 2, 12345)
    (operation,) = _only(tmp_path, _entry(1, 5, body)).operations
    assert (operation.path, operation.data, operation.version) == ("/a", b"x", 4)


def test_log_ends_at_its_preallocated_zeros(tmp_path: Path) -> None:
    path = _write(tmp_path, HEADER + _set(1) + bytes(4096))
    assert [t.zxid for t in read_log(path)] == [1]


@pytest.mark.parametrize("kept", [13, 30, 50])
def test_torn_last_record_is_ignored(tmp_path: Path, kept: int) -> None:
    """A killed server leaves half a record before the zeros."""
    path = _write(tmp_path, HEADER + _set(1) + _set(2)[:kept] + bytes(4096))
    assert [t.zxid for t in read_log(path)] == [1]


def test_flipped_bit_is_damage(tmp_path: Path) -> None:
    data = bytearray(HEADER + _set(1) + _set(2) + bytes(64))
    data[40] ^= 1
    with pytest.raises(TornLogError, match="damaged record at 16"):
        list(read_log(_write(tmp_path, bytes(data))))


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0x01000000, 70, 0])
def test_damaged_length_before_an_intact_record_is_damage(tmp_path: Path, length: int) -> None:
    """Without an intact record after it, such a length looks like a torn end."""
    data = bytearray(HEADER + _set(1) + _set(2) + _set(3) + bytes(64))
    second = len(HEADER) + len(_set(1))
    data[second + 8 : second + 12] = struct.pack(">i", length)
    with pytest.raises(TornLogError, match=f"at {second}"):
        list(read_log(_write(tmp_path, bytes(data))))


def test_torn_record_and_zeros_before_an_intact_record_are_damage(tmp_path: Path) -> None:
    torn = _set(2)[:30] + bytes(len(_set(2)) - 30)
    path = _write(tmp_path, HEADER + _set(1) + torn + bytes(128) + _set(3))
    with pytest.raises(TornLogError, match="damaged record"):
        list(read_log(path))


def test_multi_longer_than_its_record_cannot_be_decoded(tmp_path: Path) -> None:
    body = struct.pack(">iii", 1, 5, 1000)
    with pytest.raises(TornLogError, match="cannot be decoded"):
        _only(tmp_path, _entry(1, 14, body))


def test_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TornLogError, match="not a transaction log"):
        list(read_log(_write(tmp_path, b"PK\x03\x04" + bytes(100))))


def test_files_are_ordered_by_the_hexadecimal_zxid_in_their_names(tmp_path: Path) -> None:
    (tmp_path / "version-2").mkdir()
    _write(tmp_path / "version-2", HEADER + _set(10) + bytes(64), "log.a")
    _write(tmp_path / "version-2", HEADER + _set(9) + bytes(64), "log.9")
    _write(tmp_path / "version-2", HEADER + _set(16) + bytes(64), "log.10")
    assert [t.zxid for t in read_transactions(tmp_path)] == [9, 10, 16]
