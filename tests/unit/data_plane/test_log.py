"""The log of a replica on disk: appending, reading, recovery, retention."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from broker_proxy.apis.records.stored_log_dirs import StoredLogDirs
from data_plane.log.epochs import EpochStart, LeaderEpochs
from data_plane.log.log_directories import LogDirectories
from data_plane.log.open_files import OpenFiles
from data_plane.log.partition_log import PartitionLog
from data_plane.partitions import Partitions
from data_plane.records.batch import decode_batches
from data_plane.settings import SettingsCache, TopicSettings
from tests.unit.data_plane.logs import DEFAULTS, NOW, TOPIC_ID, batch, directories
from tests.unit.data_plane.replicas import Isrs, View

ROOT = Path(__file__).parents[3]


def values(log: PartitionLog, offset: int = 0, size: int = 10**9) -> list[bytes | None]:
    """Return the values of all records, starting with the batch that contains `offset`."""
    data = log.read(offset, size, log.end_offset)
    return [record.value for _, records in decode_batches(data) for record in records]


def filled(folder: Path, count: int, **configs: object) -> PartitionLog:
    """Return a log with `count` batches of two records."""
    log = directories(folder, **configs).get_or_create("topic", 0, TOPIC_ID)
    for number in range(count):
        log.append(batch(b"a%d" % number, b"b%d" % number), 3, NOW + number)
    return log


def test_a_log_without_records_has_no_folder(tmp_path: Path) -> None:
    log = filled(tmp_path, 0)
    assert log.read(0, 100, 0) == b""
    assert not log.folder.exists()


def test_reads_begin_with_the_batch_that_contains_the_offset(tmp_path: Path) -> None:
    log = filled(tmp_path, 300, segment_bytes=4000, index_interval_bytes=200)
    assert len(log.segments) > 5
    for offset in range(600):
        first = log.read(offset, 1, log.end_offset)
        (header, _), *rest = decode_batches(first)
        assert not rest
        assert header.base_offset <= offset <= header.last_offset


def test_reads_stop_at_the_high_watermark_and_reject_offsets_outside_the_log(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, 5)
    headers = [header for header, _ in decode_batches(log.read(0, 10**6, 6))]
    assert [header.last_offset for header in headers] == [1, 3, 5]
    assert log.read(10, 100, 10) == b""
    for offset in (-1, 11):
        with pytest.raises(ApiError) as rejected:
            log.read(offset, 100, 10)
        assert rejected.value.error is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("cut", [1, 10, 70])
def test_a_torn_end_is_cut_off_after_a_kill(tmp_path: Path, cut: int) -> None:
    log = filled(tmp_path, 50, segment_bytes=1500, index_interval_bytes=100)
    path = log.segments[-1].path
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - cut)
    again = directories(tmp_path, segment_bytes=1500).get_or_create("topic", 0, TOPIC_ID)
    assert again.end_offset == 98
    assert values(again, 96) == [b"a48", b"b48"]
    assert again.append(batch(b"new"), 4, NOW).base_offset == 98
    assert values(again, 96) == [b"a48", b"b48", b"new"]


def test_recovery_truncates_the_log_at_a_damaged_batch(tmp_path: Path) -> None:
    log = filled(tmp_path, 50, segment_bytes=1500)
    damaged = log.segments[2]
    with damaged.path.open("r+b") as file:
        file.seek(70)
        file.write(b"\xff\xff")
    again = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    assert again.end_offset == damaged.base_offset
    assert not any(int(path.stem) > damaged.base_offset for path in tmp_path.glob("*/*.log"))


def test_a_clean_stop_keeps_offsets_epochs_and_producers(tmp_path: Path) -> None:
    before = directories(tmp_path, segment_bytes=1500)
    log = before.get_or_create("topic", 0, TOPIC_ID)
    for number in range(50):
        log.append(batch(b"%d" % number, producer=(9, 0, number)), 3, NOW)
    log.advance_start(7)
    before.close({("topic", 0): 33})
    after = directories(tmp_path)
    again = after.logs["topic", 0]
    assert (again.start_offset, again.end_offset, again.topic_id) == (7, 50, TOPIC_ID)
    assert after.high_watermarks == {("topic", 0): 33}
    assert again.epochs.entries == [EpochStart(3, 7)]
    assert again.producers.by_id[9].last_sequence == 49


def test_a_log_of_a_deleted_topic_with_the_same_name_is_removed(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    again = directories(tmp_path).get_or_create("topic", 0, bytes(15) + b"\x01")
    assert again.end_offset == 0


def test_truncation_removes_whole_batches(tmp_path: Path) -> None:
    log = filled(tmp_path, 50, segment_bytes=1500, index_interval_bytes=100)
    log.truncate_to(31)
    assert log.end_offset == 30
    assert values(log, 28) == [b"a14", b"b14"]
    log.append(batch(b"new"), 5, NOW)
    assert log.epochs.entries == [EpochStart(3, 0), EpochStart(5, 30)]


def test_a_truncation_before_the_first_segment_leaves_an_empty_log_there(tmp_path: Path) -> None:
    """The leader's log may end before the first record that retention has left in this log."""
    log = filled(tmp_path, 50, segment_bytes=1500, retention_bytes=1500, retention_ms=-1)
    log.delete_old_segments(NOW, high_watermark=100)
    assert log.start_offset > 20
    log.truncate_to(20)
    assert (log.start_offset, log.end_offset, log.epochs.entries) == (20, 20, [])
    log.append(batch(b"new"), 5, NOW)
    assert values(log, 20) == [b"new"]


def test_old_segments_are_deleted_by_size_but_not_above_the_high_watermark(tmp_path: Path) -> None:
    log = filled(tmp_path, 200, segment_bytes=2000, retention_bytes=5000, retention_ms=-1)
    total = log.size
    assert log.delete_old_segments(NOW, high_watermark=0) == 0
    assert log.delete_old_segments(NOW, high_watermark=400) > 0
    assert 5000 <= log.size < 5000 + 2000 < total
    assert log.start_offset == log.segments[0].base_offset > 0
    with pytest.raises(ApiError):
        log.read(0, 100, 400)


def test_old_segments_are_deleted_by_time(tmp_path: Path) -> None:
    log = filled(tmp_path, 20, retention_ms=60_000)
    assert log.delete_old_segments(NOW + 60_000, high_watermark=40) == 0
    assert log.delete_old_segments(NOW + 61_000, high_watermark=40) == 1
    assert (log.start_offset, log.end_offset, log.size) == (40, 40, 0)
    assert log.append(batch(b"new"), 3, NOW).base_offset == 40


def test_a_log_whose_records_all_expired_keeps_its_end_offset_after_a_restart(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, 20, retention_ms=1)
    log.delete_old_segments(NOW + 61_000, high_watermark=40)
    assert directories(tmp_path).logs["topic", 0].end_offset == 40


def test_a_time_lookup_returns_the_first_record_at_or_after_the_time(tmp_path: Path) -> None:
    log = directories(tmp_path, segment_bytes=1500, index_interval_bytes=100).get_or_create(
        "topic", 0, TOPIC_ID
    )
    for number in range(100):
        log.append(batch(b"x", timestamp=NOW + 10 * number), 2, NOW)
    for number in range(100):
        position = log.offset_of_time(NOW + 10 * number - 9)
        assert position == (NOW + 10 * number, number, 2)
    assert log.offset_of_time(NOW + 991) is None
    assert log.newest_timestamp() == (NOW + 990, 99, 2)


def test_a_batch_sent_again_is_stored_once(tmp_path: Path) -> None:
    log = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    sent = [batch(b"a", b"b", producer=(5, 0, 2 * number)) for number in range(7)]
    first = [log.append(data, 0, NOW).base_offset for data in sent]
    for number in range(2, 7):
        info = log.append(sent[number], 0, NOW)
        assert (info.base_offset, info.is_duplicate) == (first[number], True)
    assert log.end_offset == 14
    with pytest.raises(ApiError) as rejected:
        log.append(sent[0], 0, NOW)
    assert rejected.value.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        ((5, 1, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((5, 1, 3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((5, 0, 2), ErrorCode.INVALID_PRODUCER_EPOCH),
        ((5, 2, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_a_sequence_gap_or_an_old_producer_epoch_is_rejected_after_a_kill(
    tmp_path: Path, producer: tuple[int, int, int], error: ErrorCode
) -> None:
    log = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    log.append(batch(b"a", b"b", producer=(5, 1, 0)), 0, NOW)
    again = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    with pytest.raises(ApiError) as rejected:
        again.append(batch(b"c", producer=producer), 0, NOW)
    assert rejected.value.error is error
    assert again.append(batch(b"c", producer=(5, 1, 2)), 0, NOW).base_offset == 2
    assert again.append(batch(b"d", producer=(5, 2, 0)), 0, NOW).base_offset == 3


def test_an_idle_producer_expires_and_may_then_begin_with_any_sequence(tmp_path: Path) -> None:
    log = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    log.append(batch(b"old", timestamp=NOW, producer=(9, 0, 0)), 3, NOW)
    log.append(batch(b"new", timestamp=NOW + 1, producer=(8, 0, 0)), 3, NOW)
    log.producers.expire(NOW)
    assert list(log.producers.by_id) == [8]
    assert log.append(batch(b"later", producer=(9, 0, 7)), 3, NOW).base_offset == 2


def test_the_end_of_an_epoch_is_the_start_of_the_next() -> None:
    epochs = LeaderEpochs([EpochStart(2, 0), EpochStart(5, 10), EpochStart(6, 30)])
    assert [epochs.end_offset(epoch, 99) for epoch in (-1, 1, 2, 4, 5, 6, 7)] == [
        (-1, -1),
        (1, 0),
        (2, 10),
        (2, 10),
        (5, 30),
        (6, 99),
        (-1, -1),
    ]
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 30, 98)] == [2, 2, 5, 6, 6]


def test_the_number_of_open_files_is_limited(tmp_path: Path) -> None:
    files = OpenFiles(limit=3)
    opened = {files.descriptor(tmp_path / str(number)) for number in range(20)}
    assert len(opened) <= 4
    files.close_all()


async def test_a_flushed_segment_is_trusted_after_a_kill(tmp_path: Path) -> None:
    """Recovery does not read the log before the recovery point."""
    here = directories(tmp_path, segment_bytes=1500)
    log = here.get_or_create("topic", 0, TOPIC_ID)
    for number in range(100):
        log.append(batch(b"%d" % number), 3, NOW)
    replicas = Partitions(1, here, cast(SettingsCache, None), lambda: NOW, Isrs())
    await replicas.flush()
    assert log.recovery_point == log.segments[-1].base_offset
    assert log.unflushed == []
    replicas.write_checkpoints()
    damaged = log.segments[2].path
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xff")
    again = directories(tmp_path, segment_bytes=1500).logs["topic", 0]
    assert again.end_offset == 100


def test_deleted_segments_and_logs_are_removed_by_the_function_that_the_broker_sets(
    tmp_path: Path,
) -> None:
    """A broker sets a function that deletes files in another thread."""
    here = directories(tmp_path, segment_bytes=1500, retention_bytes=3000)
    removed: list[Path] = []
    here.files.remove = removed.extend
    log = here.get_or_create("topic", 0, TOPIC_ID)
    for number in range(100):
        log.append(batch(b"%d" % number), 3, NOW)
    count = log.delete_old_segments(NOW, high_watermark=100)
    assert count > 0
    assert len(removed) == 3 * count
    assert all(path.suffix == ".deleted" for path in removed)
    here.delete([("topic", 0)])
    assert removed[-1].name.endswith("-delete")
    again = directories(tmp_path)
    assert not again.logs
    assert list(tmp_path.glob("*-delete")) == []


def test_a_log_whose_folder_lacks_the_topic_id_gets_it(tmp_path: Path) -> None:
    """A kill can leave such a folder. Fetch and AlterPartition name a topic by its id."""
    filled(tmp_path, 1).folder.joinpath("partition.metadata").unlink()
    log = directories(tmp_path).get_or_create("topic", 0, TOPIC_ID)
    assert (log.topic_id, values(log)) == (TOPIC_ID, [b"a0", b"b0"])
    assert directories(tmp_path).logs["topic", 0].topic_id == TOPIC_ID


def test_a_directory_that_another_process_uses_is_rejected(tmp_path: Path) -> None:
    owned = directories(tmp_path)
    program = (
        "import sys; from pathlib import Path; from tests.unit.data_plane.logs import directories;"
        "directories(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    other = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "Another process uses the log directory" in other.stderr
    owned.close({})
    assert subprocess.run(command, cwd=ROOT).returncode == 0


def test_a_log_that_could_not_be_moved_is_complete_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second directory is loaded last, so an incomplete copy there would replace the log."""
    paths = [str(tmp_path / "1"), str(tmp_path / "2")]
    settings = TopicSettings.of({}, DEFAULTS)
    log_dirs = LogDirectories(paths, lambda _topic: settings)
    log_dirs.load()
    log = log_dirs.get_or_create("topic", 0, TOPIC_ID)
    log.append(batch(b"a"), 0, NOW)

    def fails(_source: Path, target: Path, **_options: object) -> None:
        target.mkdir()
        (target / "00000000000000000000.log").touch()
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copytree", fails)
        patch.setattr("shutil.rmtree", lambda *_args, **_options: None)  # the process is killed
        with pytest.raises(OSError, match="No space left"):
            log_dirs.move(log.name, tmp_path / "2")
    assert values(log) == [b"a"]
    log_dirs.close({})

    again = LogDirectories(paths, lambda _topic: settings)
    again.load()
    assert values(again.logs[log.name]) == [b"a"]
    again.move(log.name, tmp_path / "2")
    assert values(again.logs[log.name]) == [b"a"]
    assert [path.name for path in tmp_path.glob("*/topic*")] == ["topic-0"]
    again.close({})


def test_an_epoch_that_cannot_be_stored_leaves_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the records stayed, the next fetch would store them again, with the same offsets."""
    leader, follower = filled(tmp_path / "1", 1), filled(tmp_path / "2", 0)
    follower.append_as_follower(leader.read(0, 10**6, 2), NOW)
    leader.append(batch(b"c"), 4, NOW)
    new = leader.read(2, 10**6, 3)

    def fails(*_args: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("data_plane.log.partition_log.write_epochs", fails)
        with pytest.raises((ApiError, OSError)):
            follower.append_as_follower(new, NOW)
    follower.append_as_follower(new, NOW)
    assert values(follower) == [b"a0", b"b0", b"c"]
    again = directories(tmp_path / "2").logs["topic", 0]
    assert again.epochs.entries == [EpochStart(3, 0), EpochStart(4, 2)]


def test_an_epoch_that_cannot_be_stored_with_the_first_batch_is_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 0)
    log.epochs.assign(3, 0)  # The leader was elected before the log had a folder.

    def fails(*_args: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("data_plane.log.partition_log.write_epochs", fails)
        with pytest.raises(ApiError):
            log.append(batch(b"a"), 3, NOW)
    log.append(batch(b"a"), 3, NOW)
    assert directories(tmp_path).logs["topic", 0].epochs.entries == [EpochStart(3, 0)]


def test_a_leader_whose_epoch_cannot_be_stored_tries_again_at_the_next_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it led with an epoch that is not stored, its records could never be committed."""
    replicas = Partitions(1, directories(tmp_path), cast(SettingsCache, None), lambda: NOW, Isrs())
    topics: dict[str, Any] = {}

    def update(view: View) -> None:
        topics["topic"] = SimpleNamespace(topic_id=TOPIC_ID, partitions={0: view})
        replicas.apply(topics, ["topic"])

    def fails(*_args: object) -> None:
        raise OSError("No space left on device")

    update(View(1, 0, 0, (1,)))
    partition = replicas.by_name["topic", 0]
    partition.append(batch(b"a"), 1, NOW)
    update(View(2, 1, 1, (2,)))
    with monkeypatch.context() as patch:
        patch.setattr("data_plane.log.partition_log.write_epochs", fails)
        update(View(1, 2, 2, (1,)))
    assert (partition.leader, partition.leader_epoch) == (2, 1)
    replicas.apply(topics, [])
    assert (partition.leader, partition.leader_epoch) == (1, 2)
    partition.append(batch(b"b"), 1, NOW)
    assert partition.high_watermark == 2
    stored = directories(tmp_path).logs["topic", 0].epochs.entries
    assert stored == [EpochStart(0, 0), EpochStart(2, 1)]


def test_the_logs_of_an_unreadable_topic_stay(tmp_path: Path) -> None:
    """Its znode is damaged, so a full image does not have it. A deleted topic's logs go."""
    here = directories(tmp_path)
    for name in ("damaged", "deleted"):
        here.get_or_create(name, 0, TOPIC_ID).append(batch(b"kept"), 3, NOW)
    replicas = Partitions(1, here, cast(SettingsCache, Mock()), lambda: NOW, Isrs())
    replicas.apply({}, None, {"damaged"})
    assert list(here.logs) == [("damaged", 0)]
    assert directories(tmp_path).logs["damaged", 0].end_offset == 1


def topic_view(topic_id: bytes, *views: View) -> Any:
    return SimpleNamespace(topic_id=topic_id, partitions=dict(enumerate(views)))


def test_a_topic_takes_its_roles_when_it_is_used_or_when_it_is_its_turn(tmp_path: Path) -> None:
    replicas = Partitions(
        1, directories(tmp_path), cast(SettingsCache, Mock()), lambda: NOW, Isrs()
    )
    topics = {name: topic_view(name.encode() * 16, View(1, 7, 3, (1,))) for name in "abc"}
    replicas.note(topics, ["a", "b"])
    assert (replicas.by_name, replicas.waiting()) == ({}, ["a", "b"])
    assert replicas.get("b", 0).leader_epoch == 7
    assert replicas.waiting() == ["a"]
    replicas.note({**topics, "b": topic_view(b"b" * 16, View(2, 8, 4, (2,)))}, ["b", "c"])
    replicas.apply_waiting("c")
    assert replicas.find(("b", 0)) is replicas.by_name["b", 0]
    assert {name: replica.leader for (name, _), replica in replicas.by_name.items()} == {
        "b": 2,
        "c": 1,
    }
    replicas.note({}, ["b"])
    with pytest.raises(ApiError) as unknown:
        replicas.get("b", 0)
    assert unknown.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ("b", 0) not in replicas.directories.logs


def test_a_topic_that_was_created_again_keeps_nothing_of_the_deleted_one(tmp_path: Path) -> None:
    """Both changes arrive before the replicas take the first one."""
    settings = SettingsCache(cast(Any, None), lambda: DEFAULTS)
    settings.changed("topic", {"max.message.bytes": "17"})
    replicas = Partitions(1, directories(tmp_path), settings, lambda: NOW, Isrs())
    replicas.apply({"topic": topic_view(TOPIC_ID, View(1, 0, 0, (1,)))}, ["topic"])
    deleted = replicas.by_name["topic", 0]
    deleted.append(batch(b"of the deleted topic"), 1, NOW)
    replicas.note({}, ["topic"])
    replicas.note({"topic": topic_view(bytes(reversed(TOPIC_ID)), View(1, 0, 0, (1,)))}, ["topic"])
    created = replicas.get("topic", 0)
    assert (created.log.end_offset, deleted.is_leader) == (0, False)
    assert not settings.is_read("topic")


def test_periodic_work_visits_only_logs_with_a_folder(tmp_path: Path) -> None:
    here = directories(tmp_path)
    replicas = Partitions(1, here, cast(SettingsCache, Mock()), lambda: NOW, Isrs())
    views = [View(1, 0, 0, (1,))] * 3
    replicas.apply({"topic": topic_view(TOPIC_ID, *views)}, ["topic"])
    assert here.stored == {}
    replicas.by_name["topic", 1].append(batch(b"a"), 1, NOW)
    assert list(here.stored) == [("topic", 1)]
    assert replicas.high_watermarks() == {("topic", 1): 1}
    assert list(directories(tmp_path).stored) == [("topic", 1)]
    replicas.apply({}, ["topic"])
    assert here.stored == {}
    assert directories(tmp_path).stored == {}


def test_a_replica_without_its_role_can_be_moved(tmp_path: Path) -> None:
    paths = [tmp_path / "first", tmp_path / "second"]
    here = LogDirectories([*map(str, paths)], lambda _topic: TopicSettings.of({}, DEFAULTS))
    here.load()
    replicas = Partitions(1, here, cast(SettingsCache, Mock()), lambda: NOW, Isrs())
    topics = {"topic": topic_view(TOPIC_ID, View(1, 0, 0, (1,)))}
    replicas.note(topics, ["topic"])
    log_dirs = StoredLogDirs(replicas, cast(Any, SimpleNamespace(topics=topics)))
    assert list(log_dirs.replicas("topic")) == [(0, str(paths[0]))]
    log_dirs.move("topic", 0, str(paths[1]))
    assert list(log_dirs.replicas("topic")) == [(0, str(paths[1]))]
    replicas.get("topic", 0).append(batch(b"a"), 1, NOW)
    assert (paths[1] / "topic-0").is_dir()
