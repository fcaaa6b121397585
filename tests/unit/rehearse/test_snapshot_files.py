"""A server's snapshot and log give the tree that the server would have after a restart."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.znodes.access import OPEN, ZnodeAcl
from rehearse.sources.snapshot import read_snapshot
from rehearse.znodes import SourceError, Znode

SASL = (ZnodeAcl(31, "sasl", "kafka"), ZnodeAcl(1, "world", "anyone"))
SESSION = 0x100001234560007


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def acl(entries: tuple[ZnodeAcl, ...]) -> bytes:
    parts = [struct.pack(">i", e.permissions) + text(e.scheme) + text(e.id) for e in entries]
    return struct.pack(">i", len(parts)) + b"".join(parts)


def stored(
    path: str, data: bytes | None = None, version: int = 0, owner: int = 0, acls: int = -1
) -> bytes:
    stat = struct.pack(">qqqqqiiiqq", acls, 1, 2, 3, 4, version, 5, 6, owner, 7)
    return text(path) + buffer(data) + stat


def snapshot(*znodes: bytes) -> bytes:
    body = struct.pack(">4siq", b"ZKSN", 2, -1)
    body += struct.pack(">i", 1) + struct.pack(">qi", SESSION, 6000)
    body += struct.pack(">iq", 1, 1) + acl(SASL)
    body += stored("") + b"".join(znodes) + text("/")
    return body + struct.pack(">q", zlib.adler32(body)) + text("/")


def log(*entries: tuple[int, int, bytes]) -> bytes:
    """Return a log of (zxid, kind, body), with preallocated zeros."""
    parts = [struct.pack(">4siq", b"ZKLG", 2, 0)]
    for zxid, kind, body in entries:
        record = struct.pack(">qiqqi", SESSION, 7, zxid, 1_700_000_000_000, kind) + body
        parts.append(struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B")
    return b"".join(parts) + bytes(4096)


def create(path: str, data: bytes | None, ephemeral: bool = False) -> bytes:
    return text(path) + buffer(data) + acl(SASL) + struct.pack(">?i", ephemeral, 1)


def set_data(path: str, data: bytes, version: int) -> bytes:
    return text(path) + buffer(data) + struct.pack(">i", version)


def delete(path: str) -> bytes:
    return text(path)


def write(folder: Path, **files: bytes) -> Path:
    """Write files named like snapshot_5 or log_6; the number is hexadecimal."""
    (folder / "version-2").mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / "version-2" / name.replace("_", ".")).write_bytes(data)
    return folder


def test_snapshot_has_data_version_acl_and_owner(tmp_path: Path) -> None:
    file = snapshot(
        stored("/brokers"),
        stored("/brokers/topics", b"", 3, acls=1),
        stored("/brokers/ids/1", b"{}", 1, owner=SESSION),
        stored("/other", b"of another program"),
    )
    tree = read_snapshot(write(tmp_path, snapshot_2a=file))
    assert tree.zxid == 0x2A
    assert dict(tree.znodes) == {
        "/brokers": Znode(acls=OPEN),
        "/brokers/topics": Znode(b"", 3, acls=SASL),
        "/brokers/ids/1": Znode(b"{}", 1, ephemeral=True, acls=OPEN),
    }


def test_later_transactions_are_applied(tmp_path: Path) -> None:
    changed = log(
        (5, 1, create("/admin", b"before the snapshot")),
        (6, 1, create("/admin/a", b"one")),
        (7, 5, set_data("/admin/a", b"two", 1)),
        (8, 1, create("/admin/b", None)),
        (9, 2, delete("/admin/b")),
        (10, 7, text("/config") + acl(SASL) + struct.pack(">i", 1)),
        (11, 15, create("/brokers/ids/1", b"{}", ephemeral=True)),
    )
    folder = write(
        tmp_path, snapshot_5=snapshot(stored("/admin"), stored("/config")), log_1=changed
    )
    tree = read_snapshot(folder)
    assert tree.zxid == 11
    assert dict(tree.znodes) == {
        "/admin": Znode(acls=OPEN),
        "/admin/a": Znode(b"two", 1, acls=SASL),
        "/config": Znode(acls=SASL),
        "/brokers/ids/1": Znode(b"{}", ephemeral=True, acls=SASL),
    }


def test_fuzzy_snapshot_is_repaired_by_the_log(tmp_path: Path) -> None:
    """The snapshot has later states already: created, set, deleted."""
    folder = write(
        tmp_path,
        snapshot_5=snapshot(stored("/admin"), stored("/admin/a", b"third", 2)),
        log_6=log(
            (6, 1, create("/admin/a", b"first")),
            (7, 5, set_data("/admin/a", b"second", 1)),
            (8, 5, set_data("/admin/a", b"third", 2)),
            (9, 5, set_data("/admin/gone", b"x", 4)),
            (10, 2, delete("/admin/gone")),
        ),
    )
    assert read_snapshot(folder).znodes["/admin/a"] == Znode(b"third", 2, acls=OPEN)


@pytest.mark.parametrize("body", [b"", struct.pack(">i", 1) + text("/brokers/ids/1")])
def test_closed_session_takes_its_znodes(tmp_path: Path, body: bytes) -> None:
    """Before ZooKeeper 3.6, the log does not name them."""
    registered = stored("/brokers/ids/1", b"{}", owner=SESSION)
    folder = write(tmp_path, snapshot_5=snapshot(registered), log_6=log((6, -11, body)))
    assert dict(read_snapshot(folder).znodes) == {}


def test_failed_multi_changes_nothing(tmp_path: Path) -> None:
    error = struct.pack(">i", -1) + buffer(struct.pack(">i", -103))
    multi = struct.pack(">i", 2) + error + error
    folder = write(tmp_path, snapshot_5=snapshot(stored("/admin")), log_6=log((6, 14, multi)))
    assert dict(read_snapshot(folder).znodes) == {"/admin": Znode(acls=OPEN)}


def test_multi_is_applied(tmp_path: Path) -> None:
    multi = struct.pack(">i", 2)
    multi += struct.pack(">i", 1) + buffer(create("/admin/a", b"x"))
    multi += struct.pack(">i", 2) + buffer(delete("/config"))
    folder = write(
        tmp_path,
        snapshot_5=snapshot(stored("/admin"), stored("/config")),
        log_6=log((6, 14, multi)),
    )
    assert set(read_snapshot(folder).znodes) == {"/admin", "/admin/a"}


def test_chroot_is_removed_from_paths(tmp_path: Path) -> None:
    file = snapshot(stored("/k"), stored("/k/brokers", b"x"), stored("/brokers"), stored("/kb"))
    folder = write(tmp_path, snapshot_5=file)
    assert dict(read_snapshot(folder, "/k").znodes) == {"/brokers": Znode(b"x", acls=OPEN)}
    assert dict(read_snapshot(folder, "/k/").znodes) == {"/brokers": Znode(b"x", acls=OPEN)}
    with pytest.raises(SourceError, match="there is no /none in this ZooKeeper"):
        read_snapshot(folder, "/none")


def test_log_may_be_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    write(tmp_path, snapshot_5=snapshot(stored("/admin")))
    write(tmp_path / "logs", log_6=log((6, 1, create("/admin/a", b"x"))))
    assert set(read_snapshot(tmp_path).znodes) == {"/admin"}
    assert "/admin/a" in read_snapshot(tmp_path, logs=tmp_path / "logs")


def test_compressed_snapshot_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "version-2" / "snapshot.5.gz").write_bytes(gzip.compress(snapshot(stored("/admin"))))
    assert "/admin" in read_snapshot(folder)


def test_epoch_may_change_between_transactions(tmp_path: Path) -> None:
    entries = log((6, 1, create("/admin/a", b"x")), (0x1_0000_0001, 1, create("/admin/b", b"x")))
    folder = write(tmp_path, snapshot_5=snapshot(stored("/admin")), log_6=entries)
    assert set(read_snapshot(folder).znodes) == {"/admin", "/admin/a", "/admin/b"}


def test_newest_intact_snapshot_is_taken(tmp_path: Path) -> None:
    good = snapshot(stored("/admin"))
    folder = write(tmp_path, snapshot_5=good, snapshot_10=good[:-30], snapshot_f=good)
    assert read_snapshot(folder).zxid == 0xF


def damage(data: bytes, at: int, value: int = 0xFF) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


GOOD = snapshot(stored("/admin", b"content"))


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "has no snapshot"),
        ({"snapshot_5": b""}, "no intact snapshot: snapshot.5: "),
        ({"snapshot_5": b"PK" + GOOD[2:]}, "it does not begin as a snapshot"),
        ({"snapshot_5": damage(GOOD, GOOD.index(b"content"))}, "its checksum is wrong"),
        ({"snapshot_5": damage(GOOD, 16, 0x7F)}, "it has an impossible count"),
        ({"snapshot_5": GOOD[: GOOD.index(b"content")]}, "it is cut off"),
        ({"snapshot_5_snappy": GOOD}, "snappy, which is not supported"),
        ({"snapshot_5_gz": b"\x1f\x8b nonsense"}, "no intact snapshot"),
        ({"snapshot_5": GOOD, "log_6": b"nonsense of sixteen bytes"}, "is not a transaction log"),
        (
            {"snapshot_5": GOOD, "log_8": log((8, 2, delete("/a")))},
            "the transactions from 0x6 to 0x7 are missing",
        ),
        ({"snapshot_5": GOOD, "log_x": b""}, "is not the name of a transaction log"),
    ],
)
def test_damage_is_an_error(tmp_path: Path, files: dict[str, bytes], error: str) -> None:
    with pytest.raises(SourceError, match=error):
        read_snapshot(write(tmp_path, **files))


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_snapshot(tmp_path / "none")


LOG = log(
    (6, 1, create("/admin/a", b"one")),
    (7, 14, struct.pack(">ii", 1, 2) + buffer(delete("/admin/a"))),
    (8, -11, struct.pack(">i", 1) + text("/brokers/ids/1")),
)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_damage_ends_in_a_tree_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """With a right checksum, the damage reaches the decoder."""
    body = bytearray(GOOD[: -8 - len(text("/"))])
    entries = bytearray(LOG)
    for damaged in (body, entries):
        for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=3)):
            damaged[at] = data.draw(st.integers(0, 255))
    whole = bytes(body) + struct.pack(">q", zlib.adler32(body)) + text("/")
    folder = write(tmp_path_factory.mktemp("damaged"), snapshot_5=whole, log_6=bytes(entries))
    try:
        tree = read_snapshot(folder)
    except SourceError:
        return
    assert all(path.startswith("/") for path in tree.znodes)
