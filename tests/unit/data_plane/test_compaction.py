"""Compaction keeps the last record of each key and its offset. The log survives a kill."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from data_plane.compaction import Compaction
from data_plane.log.cleaner import Plan, StoppedError, clean, finish, plan
from data_plane.log.log_directories import LogDirectories
from data_plane.log.partition_log import PartitionLog
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from data_plane.records.batch import NewRecord, Record, decode_batches, encode_batch, parse_header
from data_plane.records.compaction import LastOffsets, Terms, compacted
from data_plane.records.compression import Codec
from data_plane.settings import TopicSettings
from tests.unit.data_plane.logs import DEFAULTS, NOW, TOPIC_ID, directories
from tests.unit.data_plane.replicas import Isrs, View

CONFIGS = {"cleanup_policy": "compact", "segment_bytes": 600, "min_cleanable_dirty_ratio": 0.01}
DAY_MS = 86_400_000
KEYS = [b"a", b"b", b"c", b"d", b"e"]


class FirstOffsets(LastOffsets):
    """Later values of a key are removed."""

    def put(self, digest: bytes, offset: int) -> None:
        self._offsets.setdefault(digest, offset)

    def is_later(self, known_offset: int, offset: int) -> bool:
        return 0 <= known_offset != offset


def record(key: bytes, value: bytes | None, codec: Codec = Codec.NONE) -> bytes:
    return encode_batch([NewRecord(NOW, key, value)], codec=codec)


def records(log: PartitionLog) -> list[Record]:
    """Return every record of the log, read as a consumer does."""
    result: list[Record] = []
    offset = log.start_offset
    while data := log.read(offset, 300, log.end_offset):
        for header, batch in decode_batches(data):
            result += batch
            offset = header.next_offset
    return result


def last_values(log: PartitionLog) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {entry.key: (entry.offset, entry.value) for entry in records(log)}


def filled(folder: Path, count: int = 60, **configs: object) -> tuple[LogDirectories, PartitionLog]:
    """Return a log in which each of five keys has `count` / 5 values, and its directories."""
    here = directories(folder, **{**CONFIGS, **configs})
    log = here.get_or_create("t", 0, TOPIC_ID)
    for number in range(count):
        log.append(record(KEYS[number % 5], b"%d" % number), 3, NOW)
    return here, log


def planned(log: PartitionLog, cleaned_offset: int = -1, now_ms: int = NOW) -> Plan:
    work = plan(log, cleaned_offset, log.end_offset, now_ms)
    assert work is not None
    return work


def compact(
    log: PartitionLog,
    cleaned_offset: int = -1,
    now_ms: int = NOW,
    keys_max: int = 100,
    table: type[LastOffsets] = LastOffsets,
) -> int:
    """Compact the log, and return the offset at which the compacted part ends."""
    work = planned(log, cleaned_offset, now_ms)
    result = clean(work, lambda first: table(first, keys_max), lambda: False)
    gone = finish(work, result)
    assert gone is not None
    for path in gone:
        path.unlink(missing_ok=True)
    return result.end_offset


def test_compaction_keeps_the_last_value_of_each_key_with_its_offset(tmp_path: Path) -> None:
    _, log = filled(tmp_path)
    before, size, active = last_values(log), log.size, log.segments[-1]
    assert compact(log) == active.base_offset
    assert last_values(log) == before
    assert log.size < size / 3
    assert log.segments[-1] is active
    assert (log.start_offset, log.end_offset) == (0, 60)
    again = directories(tmp_path, **CONFIGS).get_or_create("t", 0, TOPIC_ID)
    assert last_values(again) == before
    assert again.end_offset == 60


def test_the_check_detects_a_compaction_that_keeps_the_first_value(tmp_path: Path) -> None:
    _, log = filled(tmp_path, 10, segment_bytes=200)
    before = [entry for entry in records(log) if entry.offset < log.segments[-1].base_offset]
    last = {entry.key: entry.value for entry in before}
    compact(log, table=FirstOffsets)
    kept = {
        entry.key: entry.value
        for entry in records(log)
        if entry.offset < log.segments[-1].base_offset
    }
    assert kept.keys() == last.keys()
    assert kept != last


def test_records_above_the_high_watermark_and_young_records_are_not_compacted(
    tmp_path: Path,
) -> None:
    _, log = filled(tmp_path, min_compaction_lag_ms=1000)
    assert plan(log, -1, log.end_offset, NOW + 999) is None
    work = plan(log, -1, log.segments[2].base_offset, NOW + 1000)
    assert work is not None
    assert work.segments == tuple(log.segments[:2])
    assert plan(log, -1, 1, NOW + 1000) is None


def test_a_segment_is_rolled_when_its_records_must_be_compacted(tmp_path: Path) -> None:
    _, log = filled(tmp_path, 2, max_compaction_lag_ms=1000)
    log.append(encode_batch([NewRecord(NOW + 1000, b"a", b"still")]), 3, NOW)
    assert len(log.segments) == 1
    log.append(encode_batch([NewRecord(NOW + 1001, b"a", b"late")]), 3, NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert planned(log, now_ms=NOW + 1001).is_due


def test_compacting_more_keys_than_fit_in_the_table_takes_several_rounds(tmp_path: Path) -> None:
    _, log = filled(tmp_path)
    before, active = last_values(log), log.segments[-1].base_offset
    offset, rounds = -1, 0
    while offset < active:
        offset = compact(log, offset, keys_max=2)
        rounds += 1
        assert last_values(log) == before
    assert rounds > 5


def test_a_tombstone_stays_until_its_delete_horizon(tmp_path: Path) -> None:
    _, log = filled(tmp_path, 10)
    log.append(record(b"a", None), 3, NOW)
    for number in range(20):
        log.append(record(b"z", b"%d" % number), 3, NOW)
    log.roll(NOW)
    offset = compact(log)
    assert last_values(log)[b"a"] == (10, None)
    tombstone = next(entry for entry in records(log) if entry.key == b"a")
    assert tombstone.timestamp == NOW

    def again(now_ms: int) -> None:
        log.append(record(b"z", b"more"), 3, NOW)
        log.roll(NOW)
        compact(log, offset, now_ms)

    again(NOW + DAY_MS - 1)
    assert b"a" in last_values(log)
    again(NOW + DAY_MS)
    assert b"a" not in last_values(log)


def test_the_last_batch_of_a_producer_is_kept_even_without_records(tmp_path: Path) -> None:
    here = directories(tmp_path, **CONFIGS)
    log = here.get_or_create("t", 0, TOPIC_ID)
    log.append(
        encode_batch([NewRecord(NOW, b"k", b"1")], producer_id=9, producer_epoch=0,
                     base_sequence=0, codec=Codec.GZIP), 3, NOW)  # fmt: skip
    for number in range(30):
        log.append(record(b"k", b"%d" % number), 3, NOW)
    compact(log)
    (header, empty), *_ = decode_batches(log.read(0, 1, log.end_offset))
    assert (header.producer_id, header.last_sequence, list(empty)) == (9, 0, [])
    for path in log.folder.glob("*.snapshot"):
        path.unlink()
    again = directories(tmp_path, **CONFIGS).logs["t", 0]
    assert again.producers.by_id[9].last_sequence == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_loses_records_keeps_its_offsets_times_and_codec(codec: Codec) -> None:
    batch = encode_batch(
        [NewRecord(NOW + n, b"k%d" % (n % 3), b"v" * 50, ((b"h", b"x"),)) for n in range(9)],
        base_offset=100,
        leader_epoch=4,
        codec=codec,
    )
    table = LastOffsets(0, 100)
    assert table.add(batch)
    kept = compacted(batch, table, Terms(NOW, DAY_MS, {}))
    ((header, kept_records),) = decode_batches(kept)
    assert [
        (kept_record.offset, kept_record.timestamp, kept_record.key) for kept_record in kept_records
    ] == [(100 + n, NOW + n, b"k%d" % (n % 3)) for n in (6, 7, 8)]
    old = parse_header(batch)
    same = ("base_offset", "last_offset_delta", "leader_epoch", "attributes", "max_timestamp")
    assert all(getattr(header, name) == getattr(old, name) for name in same)
    assert compacted(kept, table, Terms(NOW, DAY_MS, {})) == kept


def test_a_stopped_compaction_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    _, log = filled(tmp_path)
    files = sorted(path.name for path in log.folder.iterdir())
    count = iter(range(50))
    with pytest.raises(StoppedError):
        clean(planned(log), lambda first: LastOffsets(first, 100), lambda: next(count) > 45)
    assert sorted(path.name for path in log.folder.iterdir()) == files


def test_a_log_that_was_moved_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """The move deleted the folder with the compacted segments."""
    settings = TopicSettings.of({"cleanup.policy": "compact", "segment.bytes": "500"}, DEFAULTS)
    paths = [str(tmp_path / "1"), str(tmp_path / "2")]
    log_dirs = LogDirectories(paths, lambda _topic: settings)
    log_dirs.load()
    log = log_dirs.get_or_create("topic", 0, TOPIC_ID)
    for number in range(40):
        log.append(record(b"key-%d" % (number % 5), b"%d" % number), 0, NOW)
    before = records(log)
    work = planned(log)
    result = clean(work, lambda first: LastOffsets(first, 100), lambda: False)
    log_dirs.move(log.name, tmp_path / "2")
    assert finish(work, result) is None
    assert records(log) == before
    assert not list(tmp_path.glob("*/*/*.cleaned"))
    log_dirs.close({})


def test_a_log_that_was_truncated_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    _, log = filled(tmp_path)
    work = planned(log)
    result = clean(work, lambda first: LastOffsets(first, 100), lambda: False)
    log.truncate_to(work.segments[2].base_offset)
    before = last_values(log)
    assert finish(work, result) is None
    assert last_values(log) == before
    assert not list(log.folder.glob("*.cleaned"))


class Killed(BaseException):
    """The process is killed here: nothing of it runs any more."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make the nth change of the folder and all later ones fail, as if the process were dead."""
    replace, unlink = os.replace, Path.unlink

    def arm(step: int) -> None:
        steps = iter(range(10**6))

        def alive() -> None:
            if next(steps) >= step:
                raise Killed

        def replaced(old: Path, new: Path) -> None:
            alive()
            replace(old, new)

        def unlinked(path: Path, missing_ok: bool = False) -> None:
            alive()
            unlink(path, missing_ok)

        monkeypatch.setattr(os, "replace", replaced)
        monkeypatch.setattr(Path, "unlink", unlinked)

    return arm


def test_a_kill_at_any_step_of_the_replacement_loses_nothing(
    tmp_path: Path, kill_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is a rename or a deletion. The loop ends with a compaction that is not killed."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    step, killed = 0, True
    while killed:
        folder = tmp_path / str(step)
        _, log = filled(folder, 30, index_interval_bytes=0)
        before = last_values(log)
        kill_at(step)
        try:
            compact(log)
            killed = False
        except Killed:
            pass
        kill_at(10**6)
        again = directories(folder, **CONFIGS).get_or_create("t", 0, TOPIC_ID)
        assert last_values(again) == before, step
        assert (again.start_offset, again.end_offset) == (0, 30)
        assert {path.suffix for path in again.folder.iterdir()} <= {
            ".log", ".index", ".timeindex", ".snapshot", ".metadata", "",
        }  # fmt: skip
        compact(again)
        assert last_values(again) == before, step
        step += 1
    assert step > 10


class Broker:
    """A broker that leads t-0 and has the only replica of it."""

    def __init__(self, folder: Path, **configs: object) -> None:
        here = directories(folder, **{**CONFIGS, **configs})
        self.partitions = Partitions(1, here, cast(Any, self), lambda: NOW, Isrs())
        self.compaction = Compaction(self.partitions)
        self.create(TOPIC_ID)

    async def read(self, _topic: str) -> None:
        """Do nothing: the settings of the topics are known."""

    def forget(self, _topic: str) -> None:
        """See `read`."""

    def create(self, topic_id: bytes) -> None:
        view = View(1, 0, 0, (1,), (1,))
        topic = SimpleNamespace(topic_id=topic_id, partitions={0: view})
        self.partitions.apply({"t": topic}, None)

    def delete(self) -> None:
        self.partitions.apply({}, None)

    @property
    def replica(self) -> Partition:
        return self.partitions.by_name["t", 0]

    def append(self, *keys: bytes) -> None:
        for number, key in enumerate(keys):
            self.replica.append(record(key, b"%d" % number), 1, NOW)

    def keys_before_the_active_segment(self) -> list[bytes | None]:
        log = self.replica.log
        active = log.segments[-1].base_offset
        return [entry.key for entry in records(log) if entry.offset < active]


@pytest.mark.parametrize("restarts", [False, True])
async def test_records_that_replace_truncated_ones_are_compacted(
    tmp_path: Path, restarts: bool
) -> None:
    """The first new records are below the offset up to which the log was compacted before."""
    broker = Broker(tmp_path)
    broker.append(*KEYS * 12)
    assert await broker.compaction.compact(100) == 1
    end = broker.replica.log.segments[-1].base_offset
    broker.replica.truncate_to(end - 2)
    broker.append(records(broker.replica.log)[0].key or b"", *[b"z"] * 40)
    if restarts:
        broker.partitions.write_checkpoints()
        broker = Broker(tmp_path)
    assert await broker.compaction.compact(100) == 1
    kept = broker.keys_before_the_active_segment()
    assert len(kept) == len(set(kept)) == 4


def test_a_log_that_was_truncated_in_its_last_compacted_segment_is_not_replaced(
    tmp_path: Path,
) -> None:
    """If it were replaced, truncated records would return, at offsets that new records will get."""
    _, log = filled(tmp_path)
    work = planned(log)
    result = clean(work, lambda first: LastOffsets(first, 100), lambda: False)
    log.truncate_to(work.end_offset - 1)
    before = records(log)
    assert finish(work, result) is None
    assert records(log) == before


async def test_a_new_topic_is_compacted_after_its_namesake_was_deleted_during_a_compaction(
    tmp_path: Path,
) -> None:
    """The compaction of the deleted log fails, because its files are gone."""
    broker = Broker(tmp_path)
    broker.append(*KEYS * 12)

    def deletes_the_topic(first_offset: int, limit: int) -> LastOffsets:
        broker.delete()
        return LastOffsets(first_offset, limit)

    partitions: Any = broker.partitions
    partitions.new_last_offsets = deletes_the_topic
    assert await broker.compaction.compact(100) == 0
    partitions.new_last_offsets = LastOffsets
    broker.create(b"2" * 16)
    broker.append(*KEYS * 12)
    assert await broker.compaction.compact(100) == 1


async def test_a_log_that_cannot_be_compacted_is_tried_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path)
    broker.append(*KEYS * 12)
    broker.replica.log.segments[0].path.unlink()
    broker.replica.log.close_files()
    assert await broker.compaction.compact(100) == 0
    assert await broker.compaction.compact(100) == 0
    assert caplog.text.count("t-0 cannot be compacted") == 1
