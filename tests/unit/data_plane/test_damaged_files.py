"""A broker starts with damaged files, names them, and recovers what can be recovered."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bridgehead.kafka_wire.errors import ApiError
from data_plane.log.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    write_offsets,
)
from data_plane.log.epochs import EpochStart
from data_plane.log.log_directories import LogDirectories
from data_plane.log.segment import BASE_OFFSET_MAX
from tests.unit.data_plane.logs import NOW, TOPIC_ID, batch, directories

COUNT = 40
CLEAN_STOP = ".kafka_cleanshutdown"
pytestmark = pytest.mark.timeout(60)  # A pipe in the place of a file must not block.


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The log directory of a broker with two logs, after a clean stop and after a kill."""
    folders = {}
    for how in ("clean", "killed"):
        folders[how] = folder = tmp_path_factory.mktemp(how)
        before = directories(folder, segment_bytes=1500, index_interval_bytes=200)
        for topic in ("orders", "payments"):
            log = before.get_or_create(topic, 3, TOPIC_ID)
            for number in range(COUNT):
                log.append(batch(b"%d" % number, producer=(9, 0, number)), 2 + number // 10, NOW)
        marks = {("orders", 3): 33, ("payments", 3): 34}
        if how == "clean":
            before.close(marks)
        else:
            before.write_checkpoints(marks)
    return folders


@pytest.fixture(params=["clean", "killed"])
def folder(request: pytest.FixtureRequest, stopped: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of such a directory."""
    return Path(shutil.copytree(stopped[request.param], tmp_path / "logs"))


def restarted(folder: Path) -> LogDirectories:
    return directories(folder, segment_bytes=1500, index_interval_bytes=200)


def values(opened: LogDirectories, topic: str = "orders") -> bytes:
    log = opened.logs[topic, 3]
    return b"".join(
        log.read(offset, max_bytes=1, end_offset=log.end_offset, whole_first=True)
        for offset in range(log.start_offset, log.end_offset)
    )


MALFORMED = [
    b"payments 3",
    b"payments 3 x",
    b"payments 3 -7",
    b"payments 3 7 7",
    b"payments 99999999999 7",
    b"payments 4294967296 7",
    b"payments 3 9223372036854775808",
    b"payments 3 " + b"9" * 5000,
    b"pay ments 3 7",
    b"\xff\xfe 3 7",
    b"payments\x0b3 7",
    b"payments \xd9\xa3 7",
    b"",
]


@pytest.mark.parametrize("name", [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANED_OFFSETS])
def test_malformed_lines_of_a_checkpoint_lose_only_themselves(
    name: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = values(restarted_copy(folder))
    lines = b"\n".join([b"0", b"%d" % (len(MALFORMED) + 1), *MALFORMED, b"orders 3 33", b""])
    (folder / name).write_bytes(lines)
    opened = restarted(folder)
    log = opened.logs["orders", 3]
    for number in range(3, 3 + len(MALFORMED)):
        assert f"{folder / name}: line {number} is malformed and is ignored" in caplog.text
    assert (log.end_offset, opened.logs["payments", 3].end_offset) == (COUNT, COUNT)
    assert log.start_offset == (33 if name == LOG_STARTS else 0)
    assert opened.high_watermarks["orders", 3] == 33
    if name != LOG_STARTS:
        assert values(opened) == expected
    log.append(batch(b"next", producer=(9, 0, COUNT)), 9, NOW)


def restarted_copy(folder: Path) -> LogDirectories:
    """Open the logs without changing the files of `folder`."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    return restarted(copy)


@pytest.mark.parametrize("folder", ["killed"], indirect=True)
@pytest.mark.parametrize(
    "lines",
    [
        *([b"2 0", line] for line in (b"3", b"3 x", b"3 -1", b"3 7 7", b"-3 7", b"\xff 7", b"")),
        [b"2 0", b"99999999999 7"],
        [b"2 0", b"4294967296 7"],
        [b"2 0", b"3 9223372036854775808"],
        [b"3 10", b"2 0"],
        [b"2 10", b"2 20"],
        [b"2 20", b"3 10"],
    ],
    ids=repr,
)
def test_leader_epochs_are_taken_from_the_batches_if_their_checkpoint_is_damaged(
    lines: list[bytes], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "orders-3" / LEADER_EPOCHS
    path.write_bytes(b"\n".join([b"0", b"%d" % len(lines), *lines, b""]))
    entries = restarted(folder).logs["orders", 3].epochs.entries
    assert entries == [EpochStart(2 + number, 10 * number) for number in range(4)]
    assert str(path) in caplog.text


def _folder(path: Path) -> None:
    (path / "kept").mkdir(parents=True)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


IN_LOG = [
    "foo.log",
    "1.log",
    "99999999999999999999.log",  # beyond 64 bits
    "99999999999999999999999999.log",
    f"{BASE_OFFSET_MAX + 1:020}.log",
    "0000000000000000000x.log",
    "²0000000000000000000.log",
    "-0000000000000000001.log",
    "00000000000000000007.index",
    "foo.index",
    "foo.timeindex",
    "foo.snapshot",
    "99999999999999999999.snapshot",
    "foo.log.swap",
    "foo.swap",
    "foo.cleaned",
    "foo.deleted",
    "00000000000000000007.log.deleted",
    "leader-epoch-checkpoint.tmp",
    "partition.metadata.tmp",
]


@pytest.mark.parametrize("make", [_folder, _pipe, _dangling, Path.touch])
def test_what_only_has_the_name_of_a_file_of_the_log_is_set_aside(
    make: Callable[[Path], None], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = values(restarted_copy(folder))
    for name in IN_LOG:
        make(folder / "orders-3" / name)
    opened = restarted(folder)
    assert values(opened) == expected
    log = opened.logs["orders", 3]
    log.append(batch(b"next", producer=(9, 0, COUNT)), 9, NOW)
    log.truncate_to(5)
    for name in IN_LOG if make is not Path.touch else ():
        assert f"{folder / 'orders-3' / name} is no file of this broker" in caplog.text
        assert os.path.lexists(folder / "orders-3" / f"{name}.0.stray")


@pytest.mark.parametrize("name", IN_LOG)
def test_each_stray_alone_does_not_prevent_a_start(name: str, tmp_path: Path) -> None:
    directories(tmp_path).get_or_create("orders", 3, TOPIC_ID).append(batch(b"1"), 2, NOW)
    (tmp_path / "orders-3" / name).mkdir()
    assert directories(tmp_path).logs["orders", 3].end_offset == 1


@pytest.mark.parametrize("make", [_folder, _pipe, _dangling])
@pytest.mark.parametrize("name", [LEADER_EPOCHS, PARTITION_METADATA])
def test_metadata_of_a_log_that_is_no_file_is_replaced(
    name: str, make: Callable[[Path], None], folder: Path
) -> None:
    expected = values(restarted_copy(folder))
    (folder / "orders-3" / name).unlink()
    make(folder / "orders-3" / name)
    opened = restarted(folder)
    log = opened.get_or_create("orders", 3, TOPIC_ID)
    log.append(batch(b"next", producer=(9, 0, COUNT)), 9, NOW)
    assert values(opened).startswith(expected)
    assert (folder / "orders-3" / name).is_file()


@pytest.mark.parametrize("make", [_folder, _pipe, _dangling])
def test_a_checkpoint_that_is_no_file_is_set_aside(
    make: Callable[[Path], None], folder: Path
) -> None:
    expected = values(restarted_copy(folder))
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANED_OFFSETS, CLEAN_STOP):
        (folder / name).unlink(missing_ok=True)
        make(folder / name)
    opened = restarted(folder)
    assert values(opened) == expected
    opened.close({})
    assert values(restarted(folder)) == expected


@pytest.mark.parametrize(
    "text", [b"", b"version: 0", b"topic_id: \n", b"topic_id: abc\n", b"topic_id: \xff\n", b"x"]
)
def test_a_damaged_topic_id_does_not_prevent_a_start(text: bytes, tmp_path: Path) -> None:
    directories(tmp_path).get_or_create("orders", 3, TOPIC_ID).append(batch(b"1"), 2, NOW)
    (tmp_path / "orders-3" / PARTITION_METADATA).write_bytes(text)
    assert directories(tmp_path).logs["orders", 3].topic_id == bytes(16)


FOREIGN = (
    *("a b-0", "a\nb-0", "orders-99999999999", "orders-2147483648", "orders-03", "-0", "é-0"),
    *("mine-delete", "mine-1.x-delete"),
)


def test_folders_that_are_no_logs_are_left_alone(folder: Path) -> None:
    """Otherwise their names would make the next checkpoint malformed, or fit into no message."""
    for name in FOREIGN:
        (folder / name).mkdir()
        (folder / name / "00000000000000000000.log").write_bytes(b"kept")
    opened = restarted(folder)
    assert opened.logs.keys() == {("orders", 3), ("payments", 3)}
    opened.close({("orders", 3): 33})
    assert restarted(folder).high_watermarks == {("orders", 3): 33}
    for name in FOREIGN:
        assert (folder / name / "00000000000000000000.log").read_bytes() == b"kept"


def test_the_lock_file_is_not_emptied_through_a_link(folder: Path) -> None:
    victim = folder.with_name(f"{folder.name}-victim")
    victim.write_text("thesis")
    (folder / ".lock").unlink(missing_ok=True)
    (folder / ".lock").symlink_to(victim)
    (folder / f"{HIGH_WATERMARKS}.tmp").symlink_to(victim)
    restarted(folder).close({})
    assert victim.read_text() == "thesis"


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [b"\xff" * 24, b"\x7f" * 24, b"\x7f" * 5, b"\0\0\0\x01" * 6])
def test_an_index_that_does_not_fit_is_rebuilt(kind: str, content: bytes, folder: Path) -> None:
    """Also after a clean stop, when the files are trusted."""
    expected = values(restarted_copy(folder))
    for path in (folder / "orders-3").glob(f"*{kind}"):
        path.write_bytes(content)
    opened = restarted(folder)
    log = opened.logs["orders", 3]
    assert values(opened) == expected
    assert log.offset_of_time(NOW) == (NOW, 0, 2)
    assert log.append(batch(b"next", producer=(9, 0, COUNT)), 9, NOW).base_offset == COUNT


def test_a_damaged_offset_of_a_batch_ends_the_log_before_it(tmp_path: Path) -> None:
    """The checksum of a batch does not cover its offset."""
    before = directories(tmp_path)
    log = before.get_or_create("orders", 3, TOPIC_ID)
    for number in range(3):
        log.append(batch(b"%d" % number), 2, NOW)
    data = log.segments[0].read(0, log.size)
    third = 2 * len(data) // 3
    for offset in (2**62, 2**40, 1, 0, -5):
        damaged = data[:third] + offset.to_bytes(8, "big", signed=True) + data[third + 8 :]
        log.segments[0].path.write_bytes(damaged)
        assert directories(tmp_path).logs["orders", 3].end_offset == 2


@pytest.mark.parametrize("seed", range(20))
def test_random_damage_never_prevents_a_start(seed: int, folder: Path) -> None:
    """A start, a read, an append and a second start succeed; an undamaged log is complete."""
    draw = random.Random(seed)
    expected = values(restarted_copy(folder), "payments")
    files = sorted(path for path in (folder / "orders-3").iterdir())
    for path in draw.sample(files, draw.randint(1, 4)):
        data = bytearray(path.read_bytes())
        for _ in range(draw.randint(1, 8)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data[: draw.randint(0, len(data))] if draw.random() < 0.5 else data)
    opened = restarted(folder)
    assert values(opened, "payments") == expected
    log = opened.logs["orders", 3]
    for offset in range(log.start_offset, log.end_offset):
        log.read(offset, max_bytes=1, end_offset=log.end_offset, whole_first=True)
    log.append(batch(b"next"), 99, NOW)
    opened.close({("orders", 3): log.end_offset})
    assert restarted(folder).logs["orders", 3].end_offset == log.end_offset


def test_offsets_that_are_written_can_be_read(tmp_path: Path) -> None:
    offsets = {("a.b_c-d", 0): 0, ("x" * 249, 2**31 - 1): 2**63 - 1}
    write_offsets(tmp_path / HIGH_WATERMARKS, offsets)
    assert directories(tmp_path).high_watermarks == offsets


class FullDisk:
    """Replaces the function that writes segments: only `free` bytes are left on the disk."""

    def __init__(self, free: int) -> None:
        self.free = free

    def __call__(self, descriptor: int, data: bytes) -> None:
        written = data[: self.free]
        os.write(descriptor, written)
        self.free -= len(written)
        if len(written) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("free", [0, 1, 5, 60, 69, 71, 75, 80, 85, 90, 150, 155, 160, 165, 170])
def test_a_full_disk_loses_no_record_that_was_appended(
    free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebuilding an index needs space, too. It failed, and the records behind it were cut off."""
    opened = directories(tmp_path, index_interval_bytes=100, segment_bytes=4000)
    log = opened.get_or_create("orders", 3, TOPIC_ID)
    for number in range(COUNT):
        log.append(batch(b"%d" % number, timestamp=NOW + number), 2, NOW)
    expected = values(opened)
    disk = FullDisk(free)
    monkeypatch.setattr("data_plane.log.segment.write_all", disk)
    failures = 0
    for number in range(COUNT, COUNT + 8):
        try:
            log.append(batch(b"%d" % number, timestamp=NOW + number), 2, NOW)
        except ApiError:
            failures += 1
        assert values(opened).startswith(expected)
        expected = values(opened)
    assert failures
    end = log.end_offset
    disk.free = 1 << 20
    for number in range(5):
        assert log.append(batch(b"x", timestamp=NOW + 999), 2, NOW).base_offset == end + number
    assert values(opened).startswith(expected)
    assert log.size == sum(segment.path.stat().st_size for segment in log.segments)
    assert log.offset_of_time(NOW + COUNT - 1) == (NOW + COUNT - 1, COUNT - 1, 2)
    assert values(directories(tmp_path)) == values(opened)


@pytest.mark.parametrize("end", [0, 1, 7, 20, 39])
def test_a_log_can_be_truncated_on_a_full_disk(
    end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = directories(tmp_path, index_interval_bytes=100)
    log = opened.get_or_create("orders", 3, TOPIC_ID)
    for number in range(COUNT):
        log.append(batch(b"%d" % number, timestamp=NOW + number), 2, NOW)
    data = values(opened)
    monkeypatch.setattr("data_plane.log.segment.write_all", FullDisk(0))
    log.truncate_to(end)
    assert (log.end_offset, log.segments[-1].max_timestamp) == (end, NOW + end - 1 if end else -1)
    assert data.startswith(values(opened))
    monkeypatch.undo()
    log.append(batch(b"next", timestamp=NOW + 999), 3, NOW)
    found_at = log.offset_of_time(NOW + 500)
    assert found_at is not None
    assert (found_at.offset, log.end_offset) == (end, end + 1)
    assert values(directories(tmp_path)) == values(opened)
