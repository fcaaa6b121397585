"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.records.compression import Codec
from tests.fidelity.data_plane_cases.produce import produce
from tests.fidelity.data_plane_cases.record_bytes import batch
from tests.fidelity.data_plane_cases.steps import (
    FOLLOWER,
    TIME_MS,
    Case,
    Step,
    request,
    topic,
    topics,
    unsupported,
    versions,
)

K = ApiKey
_TOPIC_PARTITIONS = ["topics", "topics.*.partitions"]


def offset_cases() -> Iterator[Case]:
    """Yield the cases. The first one stores the records."""
    yield {"case": "offsets: records", "steps": list(_records())}
    for version in versions(K.LIST_OFFSETS):
        yield {"case": f"list offsets v{version}", "steps": list(_list_offsets(version))}
    for version in versions(K.OFFSET_FOR_LEADER_EPOCH):
        yield {"case": f"epochs v{version}", "steps": list(_epochs(version))}
    for version in versions(K.DELETE_RECORDS):
        yield {"case": f"delete records v{version}", "steps": list(_delete_records(version))}


def _records() -> Iterator[Step]:
    yield topics(
        topic("listed", (1,), (1,), (2,)),
        topic("listed-gzip"),
        topic("listed-deleted"),
        topic("listed-reversed"),
    )
    for number in range(3):
        values = [b"%d" % (3 * number + index) for index in range(3)]
        time_ms = TIME_MS + 1000 * number
        yield produce(9, "listed", batch(*values, time_ms=time_ms))
        yield produce(9, "listed-gzip", batch(*values, time_ms=time_ms, codec=Codec.GZIP))
        yield produce(9, "listed-deleted", batch(*values, time_ms=time_ms))
        yield produce(9, "listed-reversed", batch(*values, time_ms=TIME_MS - 1000 * number))
    yield _delete(2, "listed-deleted", (0, 4))


def _list(version: int, name: str, timestamp: int, partition: int = 0, **fields: Any) -> Step:
    step = {"to": fields.pop("to", "broker:1")}
    wanted = {"partitionIndex": partition, "timestamp": timestamp, "maxNumOffsets": 10}
    epoch = {"currentLeaderEpoch": fields.pop("epoch")} if "epoch" in fields else {}
    topic = {"name": name, "partitions": [{**wanted, **epoch}]}
    return request(K.LIST_OFFSETS, version, {"replicaId": -1, "topics": [topic], **fields}, **step)


def _list_offsets(version: int) -> Iterator[Step]:
    for timestamp in (-1, -2, -3, -4, -5, -6, -99):
        yield _list(version, "listed", timestamp)
    for after in (-1, 0, 1, 2, 3, 999, 1000, 2001, 2002, 2003):
        yield _list(version, "listed", TIME_MS + after)
    for timestamp in (-1, -2, -3, TIME_MS, TIME_MS + 1001, TIME_MS + 2002):
        for name in ("listed-gzip", "listed-deleted", "listed-reversed"):
            yield _list(version, name, timestamp)
    for timestamp in (-1, -3, TIME_MS):
        yield _list(version, "listed", timestamp, 1)
    yield _list(version, "listed", -1, 2)
    yield _list(version, "listed", -1, 2, to=FOLLOWER)
    yield _list(version, "listed", -1, 8)
    yield _list(version, "missing", -1)
    yield _list(version, "", -1)
    yield _list(version, "listed", -1, replicaId=-2)
    yield _list(version, "listed", -1, replicaId=2)
    if version == 0:
        for limit in (0, 1, 2):
            step = _list(version, "listed", -1)
            step["body"]["topics"][0]["partitions"][0]["maxNumOffsets"] = limit
            yield step
    if version >= 2:
        yield _list(version, "listed", -1, isolationLevel=1)
        yield _list(version, "listed", -1, isolationLevel=9)
    if version >= 4:
        for epoch in (0, 1, -2):
            yield _list(version, "listed", -1, epoch=epoch)
            yield _list(version, "listed", TIME_MS, epoch=epoch)
    twice = _list(version, "listed", -1)
    twice["body"]["topics"][0]["partitions"] *= 2
    yield twice
    yield request(K.LIST_OFFSETS, version, {"replicaId": -1})
    yield unsupported(K.LIST_OFFSETS, 11 + version)


def _epochs(version: int) -> Iterator[Step]:
    def ask(name: str, epoch: int, current: int = -1, partition: int = 0, **step: Any) -> Step:
        wanted = {"partition": partition, "leaderEpoch": epoch, "currentLeaderEpoch": current}
        fields = {"replicaId": -1, "topics": [{"topic": name, "partitions": [wanted]}]}
        return request(K.OFFSET_FOR_LEADER_EPOCH, version, fields, **step)

    for epoch in (0, 1, 5, -1, -2):
        yield ask("listed", epoch)
        yield ask("listed", epoch, partition=1)
    for current in (0, 1, -2):
        yield ask("listed", 0, current)
    yield ask("listed-deleted", 0)
    yield ask("listed", 0, partition=2)
    yield ask("listed", 0, partition=2, to=FOLLOWER)
    yield ask("listed", 0, partition=9)
    yield ask("missing", 0)
    yield ask("", 0)
    yield request(K.OFFSET_FOR_LEADER_EPOCH, version, {"replicaId": -1})
    wanted = [
        {
            "topic": "listed",
            "partitions": [{"partition": at, "leaderEpoch": 0} for at in (0, 1, 2)],
        },
        {"topic": "missing", "partitions": [{"partition": 0, "leaderEpoch": 0}]},
    ]
    yield request(
        K.OFFSET_FOR_LEADER_EPOCH,
        version,
        {"replicaId": -1, "topics": wanted},
        unordered=_TOPIC_PARTITIONS,
    )
    yield unsupported(K.OFFSET_FOR_LEADER_EPOCH, 5 + version)


def _delete(version: int, name: str, *wanted: tuple[int, int], **step: Any) -> Step:
    partitions = [{"partitionIndex": number, "offset": offset} for number, offset in wanted]
    fields = {"topics": [{"name": name, "partitions": partitions}], "timeoutMs": 3000}
    return request(K.DELETE_RECORDS, version, fields, unordered=_TOPIC_PARTITIONS, **step)


def _delete_records(version: int) -> Iterator[Step]:
    name = f"deleted-{version}"
    yield topics(
        topic(name, (1,), (2,)),
        topic(f"{name}-replicated", (1, 2)),
        topic(f"{name}-compacted", cleanup_policy="compact"),
        topic(f"{name}-both", cleanup_policy="compact,delete"),
    )
    for topic_name in (name, f"{name}-compacted", f"{name}-both"):
        yield produce(9, topic_name, batch(*[b"x"] * 5))
    yield produce(9, f"{name}-replicated", batch(*[b"x"] * 5), acks=-1)
    for offset in (0, 2, 1, 6, -2, 5, -1, 5):
        yield _delete(version, name, (0, offset))
        yield _list(9, name, -2)
    yield _delete(version, f"{name}-replicated", (0, 3))
    yield _delete(version, name, (1, 0))
    yield _delete(version, name, (1, 0), to=FOLLOWER)
    yield _delete(version, name, (8, 0), (-1, 0))
    yield _delete(version, f"{name}-compacted", (0, 1))
    yield _delete(version, f"{name}-both", (0, 1))
    yield _delete(version, "missing", (0, 0))
    yield _delete(version, "", (0, 0))
    yield _delete(version, "__consumer_offsets", (0, 0))
    yield request(K.DELETE_RECORDS, version, {"timeoutMs": 100})
    yield produce(9, name, batch(b"next"))
    yield unsupported(K.DELETE_RECORDS, 3 + version)
