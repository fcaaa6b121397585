"""Fetch: limits, offsets, leader epochs, sessions, older formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from data_plane.records.compression import Codec
from tests.fidelity.data_plane_cases.produce import produce
from tests.fidelity.data_plane_cases.record_bytes import batch
from tests.fidelity.data_plane_cases.steps import (
    FOLLOWER,
    NO_ID,
    Case,
    Step,
    request,
    topic,
    topics,
    unsupported,
    versions,
)

K = ApiKey
UNKNOWN_ID: Final = "bWlzc2luZyBtaXNzaW5nIA"
_IDS_FROM: Final = 13
_SESSIONS_FROM: Final = 7
_UNORDERED: Final = ("responses", "responses.*.partitions")


def fetch(
    version: int, wanted: Mapping[str, Sequence[Mapping[str, Any]]], *,
    step: Mapping[str, Any] | None = None, **fields: Any,
) -> Step:  # fmt: skip
    """Return a Fetch request for partitions by topic; from version 13 on, by topic id."""
    named = [
        {**_named(name, version), "partitions": partitions} for name, partitions in wanted.items()
    ]
    defaults = {"replicaId": -1, "maxWaitMs": 0, "maxBytes": 1 << 20}
    return request(
        K.FETCH,
        version,
        {**defaults, "topics": named, **fields},
        unordered=list(_UNORDERED),
        **(step or {}),
    )


def part(offset: int = 0, number: int = 0, size: int = 1 << 20, **fields: int) -> dict[str, int]:
    """Return a partition of a Fetch request."""
    return {"partition": number, "fetchOffset": offset, "partitionMaxBytes": size, **fields}


def _named(name: str, version: int) -> dict[str, str]:
    if version < _IDS_FROM:
        return {"topic": name}
    if name in ("", "no-id"):
        return {"topicId": NO_ID}
    return {"topicId": UNKNOWN_ID if name == "missing" else f"${name}_id"}


def fetch_cases() -> Iterator[Case]:
    """Yield the cases. The first one stores the records."""
    yield {"case": "fetch: records", "steps": list(_records())}
    for version in versions(K.FETCH):
        yield {"case": f"fetch v{version}", "steps": list(_every_version(version))}
        if version >= _SESSIONS_FROM:
            yield {"case": f"fetch sessions v{version}", "steps": list(_sessions(version))}


def _records() -> Iterator[Step]:
    yield topics(
        topic("fetched", (1,), (1,), (2,)),
        topic("fetched-gzip"),
        topic("fetched-zstd"),
        topic("fetched-to-zstd", compression_type="zstd"),
        topic("fetched-sessions", (1,), (1,)),
        topic("fetched-rack", (1, 2)),
    )
    for number in range(3):
        values = [b"%d" % (3 * number + index) * 30 for index in range(3)]
        yield produce(9, "fetched", batch(*values))
        yield produce(9, "fetched-gzip", batch(*values, codec=Codec.GZIP))
        yield produce(9, "fetched-zstd", batch(*values, codec=Codec.ZSTD))
        yield produce(9, "fetched-to-zstd", batch(*values, codec=Codec.ZSTD))
    yield produce(9, "fetched-rack", batch(b"v"), acks=-1)
    deleted = {"partitionIndex": 0, "offset": 2}
    yield request(
        K.DELETE_RECORDS,
        2,
        {"topics": [{"name": "fetched-gzip", "partitions": [deleted]}], "timeoutMs": 5000},
    )


def _every_version(version: int) -> Iterator[Step]:
    for offset in (0, 1, 3, 4, 8, 9, 10, -1, -5):
        yield fetch(version, {"fetched": [part(offset)]})
    yield fetch(version, {"fetched": [part(0, 1)]})
    yield fetch(version, {"fetched": [part(0, 2)]})
    yield fetch(version, {"fetched": [part(0, 9), part(0, -1)]})
    yield fetch(version, {"fetched": [part(0, 2)]}, step={"to": FOLLOWER})
    yield fetch(version, {"missing": [part()]})
    yield fetch(version, {"": [part()]})
    yield fetch(version, {})
    for size in (0, 1, 100, 300, -1):
        yield fetch(version, {"fetched": [part(3, size=size)]})
    for size in (0, 100, 500):
        yield fetch(version, {"fetched": [part(), part(0, 1)], "fetched-gzip": [part(2)]},
                    maxBytes=size)  # fmt: skip
    yield fetch(version, {"fetched": [part(), part()]})
    yield fetch(version, {"fetched": [part(9)]}, maxWaitMs=20, minBytes=1)
    yield fetch(version, {"fetched": [part(0)]}, maxWaitMs=10_000, minBytes=1)
    yield fetch(version, {"fetched-gzip": [part(0)]})
    yield fetch(version, {"fetched-gzip": [part(4)]})
    yield fetch(version, {"fetched-zstd": [part(0)], "fetched": [part(6)]})
    yield fetch(version, {"fetched-zstd": [part(3)]})
    yield fetch(version, {"fetched-to-zstd": [part(0)]})
    yield fetch(version, {"fetched-to-zstd": [part(9)]})
    if version >= 4:
        yield fetch(version, {"fetched": [part(0)]}, isolationLevel=1)
        yield fetch(version, {"fetched": [part(99)]}, isolationLevel=1)
        yield fetch(version, {"fetched": [part(0)]}, isolationLevel=7)
    if version >= 9:
        for epoch in (0, 1, -2):
            yield fetch(version, {"fetched": [part(0, currentLeaderEpoch=epoch)]})
        yield fetch(version, {"fetched": [part(0, 2, currentLeaderEpoch=5)]})
    if version >= 11:
        for rack in ("rack-1", "rack-2", "rack-9"):
            yield fetch(version, {"fetched-rack": [part()]}, rackId=rack)
    if version >= 12:
        for epoch in (0, 1, -1):
            yield fetch(version, {"fetched": [part(3, lastFetchedEpoch=epoch)]})
            yield fetch(version, {"fetched": [part(30, lastFetchedEpoch=epoch)]})
        yield fetch(version, {"fetched": [part(3)]}, clusterId="other")
    yield unsupported(K.FETCH, 18 + version)


def _sessions(version: int) -> Iterator[Step]:
    client = {"client": f"session-{version}"}

    def session(
        wanted: Mapping[str, Any], epoch: int, name: str = "$session", **fields: Any
    ) -> Step:
        return fetch(version, wanted, step=client, sessionId=name, sessionEpoch=epoch, **fields)

    def begin(name: str) -> Step:
        wanted = {"fetched-sessions": [part(9), part(0, 1)], "fetched": [part(9)]}
        begun = fetch(version, wanted, step=client, sessionId=0, sessionEpoch=0)
        return {**begun, "capture": {name: "sessionId"}}

    yield {**begin("session"), "capture": {"session": "sessionId"}}
    yield session({}, 1)
    yield produce(9, "fetched-sessions", batch(b"%d" % version), partition=1)
    yield session({}, 2)
    yield session({"fetched-sessions": [part(1000, 1)]}, 3)
    yield session({}, 4)
    forgotten = [{**_named("fetched-sessions", version), "partitions": [0, 1]}]
    yield session({}, 5, forgottenTopicsData=forgotten)
    yield session({}, 6)
    yield session({}, 9)  # a wrong epoch
    yield session({"missing": [part()]}, 7)
    yield session({"fetched": [part(0)]}, 8)
    yield session({"fetched": [part(9)]}, -1)  # closes the session
    yield session({}, 9)
    yield fetch(version, {}, step=client, sessionId=12345, sessionEpoch=1)
    yield fetch(version, {}, step=client, sessionId=0, sessionEpoch=1)
    yield fetch(version, {"fetched": [part(6)]}, step=client, sessionId=0, sessionEpoch=-1)
    yield begin("again")
    yield {**session({"fetched": [part(9)]}, 0, "$again"), "capture": {"third": "sessionId"}}
    yield session({}, 1, "$again")
    yield session({}, 1, "$third")
