"""Produce: records of every format and codec, damaged records, idempotent producers, limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.records.compression import Codec
from tests.fidelity.data_plane_cases.record_bytes import DAMAGED, OLD, batch, set_of, without_key
from tests.fidelity.data_plane_cases.steps import (
    FOLLOWER,
    TIME_MS,
    Case,
    Step,
    request,
    text,
    topic,
    topics,
    unsupported,
    versions,
)

K = ApiKey
_FAR_MS = 4_000_000_000_000  # in the year 2096


def produce(
    version: int, name: str, records: bytes | None, *, partition: int = 0, acks: int = 1,
    transactional_id: str | None = None, **step: Any,
) -> Step:  # fmt: skip
    """Return a Produce request for one partition."""
    fields = {
        "transactionalId": transactional_id,
        "acks": acks,
        "timeoutMs": 1500,
        "topicData": [{"name": name, "partitionData": [_data(partition, records)]}],
    }
    return request(K.PRODUCE, version, fields, **step)


def read_back(name: str, partition: int = 0) -> Step:
    """Return a Fetch request for all records of a partition."""
    wanted = {"partition": partition, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    fields = {
        "replicaId": -1,
        "maxWaitMs": 0,
        "maxBytes": 1 << 20,
        "topics": [{"topic": name, "partitions": [wanted]}],
    }
    return request(K.FETCH, 11, fields)


def produce_cases() -> Iterator[Case]:
    """Yield the cases."""
    for version in versions(K.PRODUCE):
        yield {"case": f"produce v{version}", "steps": list(_every_version(version))}
    yield {"case": "produce damaged", "steps": list(_damaged())}
    yield {"case": "produce compressed", "steps": list(_compressed())}
    yield {"case": "produce with topic configs", "steps": list(_topic_configs())}
    yield {"case": "produce idempotent", "steps": list(_idempotent())}
    yield {"case": "produce to several partitions", "steps": list(_several())}
    yield {"case": "produce with several entries of a topic", "steps": list(_repeated_topic())}
    yield {"case": "produce without acknowledgement", "steps": list(_without_acks())}


def _every_version(version: int) -> Iterator[Step]:
    name = f"produce-{version}"
    yield topics(
        topic(name, (1,), (2,)),
        topic(f"{name}-replicated", (1, 2)),
        topic(f"{name}-appended", message_timestamp_type="LogAppendTime"),
        topic(f"{name}-small", max_message_bytes="100"),
        topic(f"{name}-compacted", cleanup_policy="compact"),
    )
    records = batch(b"v", b"w") if version >= 3 else set_of(version // 2, b"v", b"w")
    for acks in (1, -1, 2, -2):
        yield produce(version, name, records, acks=acks)
    yield produce(version, f"{name}-replicated", records, acks=-1)
    yield produce(version, name, records, partition=1)
    yield produce(version, name, records, partition=9)
    yield produce(version, name, records, partition=-1)
    yield produce(version, "missing", records)
    yield produce(version, "", records)
    yield produce(version, "bad name", records)
    yield produce(version, f"{name}-appended", records)
    large = batch(b"x" * 200) if version >= 3 else set_of(version // 2, b"x" * 200)
    yield produce(version, f"{name}-small", large)
    yield produce(version, f"{name}-compacted", without_key() if version >= 3 else records)
    yield produce(version, name, OLD["format 0"])
    yield produce(version, name, OLD["format 1"])
    yield produce(version, name, OLD["format 1, gzip"])
    yield produce(version, name, batch(b"2"))
    yield produce(version, name, batch(b"z", codec=Codec.ZSTD))
    for damage in ("checksum", "two batches", "empty", "format 3", "first offset 5"):
        yield produce(version, name, DAMAGED[damage])
    yield request(K.PRODUCE, version, {"acks": 1, "timeoutMs": 100})
    yield read_back(name)
    yield unsupported(K.PRODUCE, 12 + version)


def _damaged() -> Iterator[Step]:
    yield topics(topic("damaged"))
    for version in (2, 7, 11):
        for records in DAMAGED.values():
            yield produce(version, "damaged", records)
    for version in (0, 2):
        for records in OLD.values():
            yield produce(version, "damaged", records)
    yield produce(9, "damaged", batch(b"v"), transactional_id="")
    yield read_back("damaged")


def _compressed() -> Iterator[Step]:
    values = [b"%d" % number * 20 for number in range(20)]
    codecs = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")
    yield topics(*(topic(f"to-{codec}", compression_type=codec) for codec in codecs))
    for codec in codecs:
        for source in Codec:
            yield produce(9, f"to-{codec}", batch(*values, codec=source))
        yield produce(1, f"to-{codec}", set_of(0, b"a", b"b", codec=Codec.GZIP))
        yield read_back(f"to-{codec}")


def _topic_configs() -> Iterator[Step]:
    yield topics(
        topic("appended", message_timestamp_type="LogAppendTime"),
        topic("in-time", message_timestamp_before_max_ms="1000"),
        topic("not-too-late", message_timestamp_after_max_ms="1000"),
        topic("small", max_message_bytes="80"),
        topic("segments", segment_bytes="1000"),
        topic("compacted", cleanup_policy="compact"),
        topic("two-in-sync", (1,), min_insync_replicas="2"),
        topic("three-in-sync", (1, 2), min_insync_replicas="3"),
        topic("old-format", message_format_version="0.9.0"),
    )
    for version in (2, 7, 8, 11):
        plain = batch(b"v", b"w")
        yield produce(version, "appended", plain)
        yield produce(version, "in-time", plain)
        yield produce(version, "not-too-late", batch(b"late", time_ms=_FAR_MS))
        yield produce(version, "not-too-late", plain)
        yield produce(version, "small", batch(b"x" * 100))
        yield produce(version, "small", batch(b"x"))
        yield produce(version, "segments", batch(b"x" * 900))
        yield produce(version, "segments", batch(b"x" * 1000))
        yield produce(version, "compacted", plain)
        yield produce(version, "compacted", without_key())
        yield produce(version, "compacted", batch(None))
        for acks in (1, -1):
            yield produce(version, "two-in-sync", plain, acks=acks)
            yield produce(version, "three-in-sync", plain, acks=acks)
        yield produce(version, "old-format", plain)
        yield produce(version, "not-too-late", batch(b"-1", time_ms=-1))
    for name in ("in-time", "small", "compacted", "old-format"):
        yield read_back(name)


def _idempotent() -> Iterator[Step]:
    yield topics(topic("idempotent"), topic("idempotent-appended",
                 message_timestamp_type="LogAppendTime"))  # fmt: skip

    def send(producer: int, epoch: int, sequence: int, count: int = 1, version: int = 9) -> Step:
        values = [b"%d" % number for number in range(sequence, sequence + count)]
        records = batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        return produce(version, "idempotent", records)

    for version in (3, 7, 11):
        yield send(100 + version, 0, 0, 2, version)
        yield send(100 + version, 0, 2, 1, version)
        yield send(100 + version, 0, 2, 1, version)  # again
        yield send(100 + version, 0, 0, 2, version)  # again, an older one
        yield send(100 + version, 0, 5, 1, version)  # a gap
        yield send(100 + version, 0, 1, 1, version)  # in the middle of a batch
        yield send(100 + version, 1, 3, 1, version)  # a new epoch begins at 0
        yield send(100 + version, 1, 0, 1, version)
        yield send(100 + version, 0, 3, 1, version)  # an older epoch
        yield send(200 + version, 3, 7, 1, version)  # an unknown producer
    for sequence in range(7):
        yield send(300, 0, sequence)
    yield send(300, 0, 0)  # older than the last five
    yield send(300, 0, 1)
    yield send(300, 0, 2)
    yield send(301, 0, 2**31 - 2, 2)
    yield send(301, 0, 0)  # sequences continue at 0
    yield send(301, 0, 2**31 - 2, 2)
    appended = batch(b"a", producer_id=302, producer_epoch=0, base_sequence=0)
    for _ in range(2):
        yield produce(9, "idempotent-appended", appended)
    yield read_back("idempotent")


def _several() -> Iterator[Step]:
    yield topics(topic("several", (1,), (1,), (2,)), topic("several-too", (1,)))

    for version in versions(K.PRODUCE, 3):
        good = batch(b"v")
        first = [_data(0, good), _data(1, DAMAGED["checksum"]), _data(2, good), _data(7, good)]
        second = [_data(0, batch(b"x", b"y")), _data(0, good)]
        wanted = [
            {"name": "several", "partitionData": first},
            {"name": "several-too", "partitionData": second[: 1 if version % 2 else 2]},
            {"name": "missing", "partitionData": [_data(0, good)]},
        ]
        fields = {"acks": -1, "timeoutMs": 1500, "topicData": wanted}
        yield request(
            K.PRODUCE, version, fields, unordered=["responses", "responses.*.partitionResponses"]
        )
    yield read_back("several")
    yield read_back("several-too")


def _repeated_topic() -> Iterator[Step]:
    yield topics(topic("repeated", (1,), (1,)))
    for version in versions(K.PRODUCE, 3):
        wanted = [
            {"name": "repeated", "partitionData": [_data(0, batch(b"a")), _data(1, batch(b"b"))]},
            {"name": "missing", "partitionData": [_data(0, batch(b"c"))]},
            {"name": "repeated", "partitionData": [_data(0, batch(b"d", b"e"))]},
            {"name": "missing", "partitionData": [_data(1, batch(b"f"))]},
        ]
        fields = {"acks": -1, "timeoutMs": 1500, "topicData": wanted}
        yield request(
            K.PRODUCE, version, fields, unordered=["responses", "responses.*.partitionResponses"]
        )
    yield read_back("repeated")
    yield read_back("repeated", 1)


def _data(index: int, records: bytes | None) -> dict[str, Any]:
    return {"index": index, "records": text(records)}


def _without_acks() -> Iterator[Step]:
    yield topics(topic("unacknowledged"))

    def listed(client: str) -> Step:
        wanted = {"partitionIndex": 0, "timestamp": -1}
        fields = {
            "replicaId": -1, "topics": [{"name": "unacknowledged", "partitions": [wanted]}],
        }  # fmt: skip
        return request(K.LIST_OFFSETS, 5, fields, client=client)

    for version in versions(K.PRODUCE):
        records = batch(b"v") if version >= 3 else set_of(version // 2, b"v")
        client = f"silent-{version}"
        yield produce(version, "unacknowledged", records, acks=0, client=client, later=True)
        yield listed(client)
        yield produce(version, "missing", records, acks=0, client=client, later=True)
        yield listed(client)  # on a closed connection
        yield produce(
            version, "unacknowledged", records, acks=0, client=client, later=True, to=FOLLOWER
        )
        yield {**listed(client), "to": FOLLOWER}
    yield produce(9, "unacknowledged", batch(b"x", time_ms=TIME_MS))
