"""A recorded metadata log of a real controller, and damaged and unfinished ones."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.generate import Generator
from data_plane.records.batch import NewRecord, encode_batch
from rehearse.kraft.storage import bootstrap_checkpoint
from rehearse.metadata import Item, Kind, counts
from rehearse.metadata_log import FOLDER, Metadata, MetadataLog, MetadataLogError, records_of
from rehearse.metadata_records import (
    LAYOUTS,
    ClientQuotaRecord,
    ConfigRecord,
    MigrationState,
    PartitionChangeRecord,
    PartitionRecord,
    QuotaEntity,
    RecordType,
    RemoveTopicRecord,
    TopicRecord,
)

_RECORDED = Path("tests/data/rehearse/metadata-3.9.1.log")
_ID = bytes(range(16))


def _log(tmp_path: Path) -> Path:
    folder = tmp_path / FOLDER
    folder.mkdir()
    shutil.copy(_RECORDED, folder / f"{0:020}.log")
    return tmp_path


def _value(kind: RecordType, content: Any = None) -> bytes:
    out = bytearray((1, kind, 0))
    if content is None:
        return bytes(out + b"\0")
    Generator(0, flexible=True).encoder(LAYOUTS[kind])(content, out)
    return bytes(out)


def _batch(*values: bytes, at: int = 0, epoch: int = 5) -> bytes:
    records = [NewRecord(0, None, value) for value in values]
    return encode_batch(records, base_offset=at, leader_epoch=epoch)


def _metadata(*values: bytes) -> Metadata:
    result = Metadata()
    result.apply(records_of(_batch(*values), "a test"))
    return result


def test_recorded_log_has_every_kind_of_item(tmp_path: Path) -> None:
    metadata = MetadataLog(_log(tmp_path)).read(until=MigrationState.MIGRATION)
    items = metadata.items()
    assert counts(items) == {
        Kind.TOPIC: 5,
        Kind.PARTITION: 15,
        Kind.LEADERSHIP: 15,
        Kind.CONFIG: 6,
        Kind.QUOTA: 4,
        Kind.SCRAM: 1,
        Kind.ACL: 2,
        Kind.TOKEN: 1,
        Kind.PRODUCER_IDS: 1,
    }
    assert items[Item(Kind.PARTITION, "t3-1")] == "replicas 2,3,1"
    assert items[Item(Kind.CONFIG, "topic t4 retention.ms")] == "5"
    assert items[Item(Kind.QUOTA, "client-id 'app 1', user 'alice' request_percentage")] == "12.5"
    assert items[Item(Kind.QUOTA, "user <default> consumer_byte_rate")] == "10000000"
    assert items[Item(Kind.PRODUCER_IDS, "")] == "next 5000"
    denied = "Deny User:bob from 10.0.0.1 Read on Group 'g' (prefixed)"
    assert items[Item(Kind.ACL, denied)] == "present"
    assert metadata.features == {"metadata.version": 21}


def test_credentials_are_digests(tmp_path: Path) -> None:
    items = MetadataLog(_log(tmp_path)).read().items()
    credential = items[Item(Kind.SCRAM, "alice SCRAM-SHA-256")]
    assert credential.startswith("sha256:")
    assert credential.endswith(", 4096 iterations")


def test_incomplete_batch_at_the_end_is_left_out() -> None:
    whole = _batch(_value(RecordType.TOPIC, TopicRecord("one", _ID)))
    begun = _batch(_value(RecordType.REMOVE_TOPIC, RemoveTopicRecord(_ID)), at=1)
    for size in (0, 5, 30, len(begun) - 1):
        assert [record.offset for record in records_of(whole + begun[:size], "it")] == [0]


@pytest.mark.parametrize("at", [4, 61, 70, 200, 1200, 3000])
def test_damage_never_crashes(at: int) -> None:
    data = bytearray(_RECORDED.read_bytes())
    data[at : at + 8] = b"\xff" * 8
    with contextlib.suppress(MetadataLogError):  # some damage is within a name
        list(records_of(bytes(data), "the log"))


def test_damaged_length_is_an_error_that_names_the_file() -> None:
    data = bytearray(_RECORDED.read_bytes())
    data[8:12] = b"\0\0\0\1"
    with pytest.raises(MetadataLogError, match="the log is not a metadata log"):
        list(records_of(bytes(data), "the log"))


def test_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetadataLogError, match="cannot be read"):
        MetadataLog(tmp_path).read()


def test_transaction_takes_effect_at_its_end() -> None:
    begin, topic = _value(RecordType.BEGIN_TRANSACTION), TopicRecord("one", _ID)
    values = [begin, _value(RecordType.TOPIC, topic)]
    assert not _metadata(*values).items()
    assert not _metadata(*values, _value(RecordType.ABORT_TRANSACTION)).items()
    assert Item(Kind.TOPIC, "one") in _metadata(*values, _value(RecordType.END_TRANSACTION)).items()


def test_partition_changes_raise_epochs() -> None:
    partition = PartitionRecord(4, _ID, [1, 2, 3], [1, 2, 3], [], [], 1, 0, 7, 9)
    change = PartitionChangeRecord(4, _ID, isr=[2, 3], leader=2)
    isr_only = PartitionChangeRecord(4, _ID, isr=[2])
    items = _metadata(
        _value(RecordType.TOPIC, TopicRecord("one", _ID)),
        _value(RecordType.PARTITION, partition),
        _value(RecordType.PARTITION_CHANGE, change),
        _value(RecordType.PARTITION_CHANGE, isr_only),
    ).items()
    expected = "leader 2, leader epoch 8, ISR 2, partition epoch 11"
    assert items[Item(Kind.LEADERSHIP, "one-4")] == expected


def test_replicas_out_of_sync_are_named_for_the_topics_that_are_asked_for() -> None:
    other = bytes(reversed(_ID))
    values = [
        _value(RecordType.TOPIC, TopicRecord("one", _ID)),
        _value(RecordType.TOPIC, TopicRecord("two", other)),
        *(
            _value(RecordType.PARTITION, PartitionRecord(index, of, [3, 1, 2], isr, [], [], 2))
            for of, index, isr in ((_ID, 4, [2, 3]), (_ID, 5, [2, 1, 3]), (other, 0, [2]))
        ),
    ]
    assert _metadata(*values).out_of_sync(["one"]) == {"one-4": [1]}
    assert _metadata(*values).out_of_sync(["two", "one"]) == {"one-4": [1], "two-0": [1, 3]}
    back = _value(RecordType.PARTITION_CHANGE, PartitionChangeRecord(4, _ID, isr=[2, 3, 1]))
    assert _metadata(*values, back).out_of_sync(["one"]) == {}


def test_removal_of_a_topic_removes_partitions_and_configs() -> None:
    partition = PartitionRecord(0, _ID, [1], [1], [], [], 1, 0, 0, 0)
    config = ConfigRecord(2, "one", "retention.ms", "77")
    values = [
        _value(RecordType.TOPIC, TopicRecord("one", _ID)),
        _value(RecordType.PARTITION, partition),
        _value(RecordType.CONFIG, config),
    ]
    assert len(_metadata(*values).items()) == 4
    removal = _value(RecordType.REMOVE_TOPIC, RemoveTopicRecord(_ID))
    assert not _metadata(*values, removal).items()


def test_quota_is_removed() -> None:
    entity = [QuotaEntity("user", None)]
    values = [_value(RecordType.CLIENT_QUOTA, ClientQuotaRecord(entity, "rate", 3.5, False))]
    assert list(_metadata(*values).items().values()) == ["3.5"]
    values.append(_value(RecordType.CLIENT_QUOTA, ClientQuotaRecord(entity, "rate", 0.0, True)))
    assert not _metadata(*values).items()


def test_snapshot_replaces_earlier_segments(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    old = _batch(_value(RecordType.TOPIC, TopicRecord("old", bytes(16))))
    new = _batch(_value(RecordType.TOPIC, TopicRecord("new", _ID)))
    later = _batch(_value(RecordType.CONFIG, ConfigRecord(2, "new", "a", "b")), at=41)
    (folder / f"{0:020}.log").write_bytes(old + later)
    (folder / f"{40:020}-{3:010}.checkpoint").write_bytes(new)
    items = MetadataLog(tmp_path).read().items()
    assert set(map(str, items)) == {"topic new", "config topic new a"}


def test_bootstrap_snapshot_equals_that_of_kafkas_tool() -> None:
    recorded = Path("tests/data/rehearse/bootstrap-3.9.1.checkpoint").read_bytes()
    ours = bootstrap_checkpoint(21)
    assert len(ours) == len(recorded)
    headers = [
        [record._replace(offset=0) for record in records_of(data, "it")]
        for data in (ours, recorded)
    ]
    assert headers[0] == headers[1]
    # Apart from times and checksums the bytes are equal.
    different = [
        at for at, pair in enumerate(zip(ours, recorded, strict=True)) if pair[0] != pair[1]
    ]
    starts = [0, 83, 174]
    allowed = {s + n for s in starts for n in (*range(17, 21), *range(27, 43))}
    assert set(different) <= allowed
