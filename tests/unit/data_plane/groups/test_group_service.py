"""The coordinator's service over a log in memory: the order of appends, errors, loading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import count

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.session_state import ConnectionLostError
from data_plane.groups.coordinator import GroupCoordinator
from data_plane.groups.group import CommittedOffset, Group, State
from data_plane.groups.membership import Join, Joined, RequestDroppedError, Sync
from data_plane.groups.offsets import Commit
from data_plane.groups.records import GroupRecord, OffsetKey, OffsetValue, decode_record
from data_plane.groups.service import GroupService, ServiceSettings
from data_plane.groups.table import GroupSettings, Moment, OffsetsDeleted, OffsetsStored
from data_plane.records.batch import NewRecord, decode_batches, encode_batch, parse_header, place

TOPIC = "__consumer_offsets"
PARTITION = 0


class MemoryLog:
    """One partition in memory. Appends with acknowledgements wait until `acknowledge` is set."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.error: ErrorCode | None = None
        self.acknowledge = asyncio.Event()
        self.acknowledge.set()

    @property
    def end(self) -> int:
        return parse_header(self.batches[-1]).next_offset if self.batches else 0

    async def append(self, partition: int, records: bytes, *, acks: int, timeout_s: float) -> int:
        assert partition == PARTITION
        if self.error is not None:
            raise ApiError(self.error)
        header, offset = parse_header(records), self.end
        placed = place(
            records,
            header,
            base_offset=offset,
            leader_epoch=0,
            max_timestamp=header.max_timestamp,
            attributes=header.attributes,
        )
        self.batches.append(placed)
        if acks:
            await self.acknowledge.wait()
        return offset

    def bytes_max(self) -> int:
        return 700_000

    def start_offset(self, partition: int) -> int:
        return 0

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        return next((b for b in self.batches if parse_header(b).next_offset > offset), b"")

    def records(self) -> Iterator[GroupRecord]:
        for batch in self.batches:
            for _, records in decode_batches(batch):
                for record in records:
                    decoded = decode_record(record.key or b"", record.value)
                    assert decoded is not None
                    yield decoded


class Recorded:
    """Evidence in memory: one line for each call."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def committed(self, commit: OffsetsStored) -> None:
        offsets = [offset.offset for offset in commit.offsets.values()]
        self.lines.append(f"committed {offsets} at {commit.log_offset}")

    def removed(self, removal: OffsetsDeleted) -> None:
        self.lines.append(f"removed {list(removal.keys)}")

    def loaded(self, number: int, leader_epoch: int, groups: Iterable[Group]) -> None:
        self.lines.append(f"loaded {held(groups)} in epoch {leader_epoch}")

    def stopped(self, number: int, groups: Iterable[Group]) -> None:
        self.lines.append(f"stopped with {held(groups)}")


def held(groups: Iterable[Group]) -> list[int]:
    return [offset.committed.offset for group in groups for offset in group.offsets.values()]


def a_service(log: MemoryLog, evidence: Recorded | None = None) -> GroupService:
    def now() -> Moment:
        ms = int(asyncio.get_running_loop().time() * 1000)
        return Moment(1_700_000_000_000 + ms, ms)

    uuids = count(1)
    core = GroupCoordinator(
        GroupSettings(initial_rebalance_delay_ms=0, min_session_timeout_ms=1),
        partition_of=lambda _: PARTITION,
        new_uuid=lambda: str(next(uuids)),
        now=now(),
    )
    return GroupService(core, log, ServiceSettings(), now, evidence or Recorded())


@pytest.fixture
async def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
async def service(log: MemoryLog) -> AsyncIterator[GroupService]:
    service = a_service(log)
    await leads(service)
    yield service
    await service.close()


async def leads(service: GroupService, leader_epoch: int = 0) -> None:
    """Let this broker lead the partition; return when its groups are loaded."""
    service.became_leader(TOPIC, PARTITION, leader_epoch)
    while service.list_groups([], [])[0]:
        await asyncio.sleep(0)


def a_join(member_id: str = "", session_ms: int = 60_000) -> Join:
    return Join(
        group_id="g",
        member_id=member_id,
        needs_known_id=False,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=session_ms,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )


def a_sync(joined: Joined, assignment: bytes = b"x") -> Sync:
    return Sync(
        group_id="g",
        generation=joined.generation,
        member_id=joined.member_id,
        assignments={joined.member_id: assignment},
    )


def a_commit(offset: int) -> Commit:
    return Commit(group_id="g", offsets={("t", 0): CommittedOffset(offset, -1, "", 0)})


async def offset_of(service: GroupService) -> int | None:
    _, offsets = await service.fetch("g", [("t", 0)], stable=False)
    committed = offsets["t", 0].committed
    return None if committed is None else committed.offset


async def test_a_commit_gets_its_response_when_the_replicas_have_it(
    service: GroupService, log: MemoryLog
) -> None:
    log.acknowledge.clear()
    commit = asyncio.create_task(service.commit(a_commit(5)))
    while not log.batches:
        await asyncio.sleep(0)
    assert await offset_of(service) is None
    assert not commit.done()

    log.acknowledge.set()
    assert await commit == {("t", 0): ErrorCode.NONE}
    assert await offset_of(service) == 5


async def test_commits_reach_the_log_in_the_order_of_the_requests(
    service: GroupService, log: MemoryLog
) -> None:
    await asyncio.gather(*(service.commit(a_commit(offset)) for offset in range(50)))

    values = [record.value for record in log.records() if isinstance(record.key, OffsetKey)]
    written = [value.offset for value in values if isinstance(value, OffsetValue)]
    assert written == list(range(50))
    assert await offset_of(service) == 49


async def test_a_commit_fails_if_its_append_fails(service: GroupService, log: MemoryLog) -> None:
    log.error = ErrorCode.NOT_ENOUGH_REPLICAS

    errors = await service.commit(a_commit(5))

    assert errors == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert await offset_of(service) is None


async def test_a_commit_with_a_group_id_that_is_too_long_is_an_unknown_server_error(
    service: GroupService,
) -> None:
    commit = Commit(group_id="g" * 40_000, offsets={("t", 0): CommittedOffset(1, -1, "", 0)})

    assert await service.commit(commit) == {("t", 0): ErrorCode.UNKNOWN_SERVER_ERROR}


def state_of(service: GroupService) -> State:
    group = service.describe("g")[1]
    assert group is not None
    return group.state


async def test_a_member_joins_gets_its_assignment_and_expires(service: GroupService) -> None:
    joined = await service.join(a_join(session_ms=50))
    synced = await service.sync(a_sync(joined))
    assert (joined.error, synced.assignment) == (ErrorCode.NONE, b"x")
    assert state_of(service) is State.STABLE

    async with asyncio.timeout(10):
        while state_of(service) is not State.EMPTY:
            await asyncio.sleep(0.01)


async def test_a_second_join_of_a_member_replaces_the_first_which_gets_no_response(
    service: GroupService,
) -> None:
    leader = await service.join(a_join())
    follower = asyncio.create_task(service.join(a_join()))
    await asyncio.sleep(0)
    await asyncio.gather(service.join(a_join(leader.member_id)), follower)

    await service.sync(a_sync(await service.join(a_join(leader.member_id))))
    first = asyncio.create_task(service.join(a_join(leader.member_id)))
    await asyncio.sleep(0)
    second = asyncio.create_task(service.join(a_join(leader.member_id)))

    # Both requests wait for the other member, which has not joined again.
    with pytest.raises(RequestDroppedError):
        await first
    second.cancel()


async def test_another_coordinator_loads_what_was_committed(log: MemoryLog) -> None:
    """Members keep their sessions on the new coordinator, which reads the offsets from the log."""
    first = a_service(log)
    await leads(first)
    joined = await first.join(a_join())
    await first.sync(a_sync(joined))
    member = Commit(
        group_id="g",
        generation=1,
        member_id=joined.member_id,
        offsets={("t", 0): CommittedOffset(7, 3, "m", 0)},
    )
    await first.commit(member)
    first.resigned(TOPIC, PARTITION)
    assert first.heartbeat("g", 1, joined.member_id, None) is ErrorCode.NOT_COORDINATOR

    second = a_service(log)
    await leads(second, leader_epoch=1)
    assert second.heartbeat("g", 1, joined.member_id, None) is ErrorCode.NONE
    assert await offset_of(second) == 7
    await first.close()
    await second.close()


async def test_a_damaged_record_is_skipped_and_the_others_are_loaded(log: MemoryLog) -> None:
    await log.append(0, encode_batch([NewRecord(0, b"\0\1damaged", b"")]), acks=0, timeout_s=1)
    first = a_service(log)
    await leads(first)
    await first.commit(a_commit(3))
    await first.close()

    second = a_service(log)
    await leads(second)
    assert await offset_of(second) == 3
    await second.close()


async def test_a_commit_of_a_client_that_disconnected_is_stored(
    service: GroupService, log: MemoryLog
) -> None:
    log.acknowledge.clear()
    commit = asyncio.create_task(service.commit(a_commit(5)))
    while not log.batches:
        await asyncio.sleep(0)
    commit.cancel()
    log.acknowledge.set()

    async with asyncio.timeout(10):
        while await offset_of(service) != 5:
            await asyncio.sleep(0)


async def test_members_that_wait_get_a_response_when_the_coordinator_stops(log: MemoryLog) -> None:
    service = a_service(log)
    await leads(service)
    first = await service.join(a_join())
    await service.sync(a_sync(first))
    waiting = asyncio.create_task(service.join(a_join()))
    await asyncio.sleep(0)

    await service.close()

    assert (await waiting).error is ErrorCode.NOT_COORDINATOR


async def test_evidence_lists_commits_and_deletions_and_all_offsets_at_load_and_stop(
    log: MemoryLog,
) -> None:
    first, second = Recorded(), Recorded()
    service = a_service(log, first)
    await leads(service)
    await service.commit(a_commit(3))
    await service.commit(a_commit(5))
    # The offset is deleted while this commit is being written, so its line lists no offset.
    log.acknowledge.clear()
    lost = asyncio.ensure_future(service.commit(a_commit(7)))
    await asyncio.sleep(0)
    service.delete_offsets("g", [("t", 0)])
    log.acknowledge.set()
    assert await lost == {("t", 0): ErrorCode.NONE}
    await service.commit(a_commit(9))
    await service.close()
    assert [line for line in first.lines if line != "committed [] at 2"] == [
        "loaded [] in epoch 0",
        "committed [3] at 0",
        "committed [5] at 1",
        "removed [('t', 0)]",
        "committed [9] at 4",
        "stopped with [9]",
    ]
    service = a_service(log, second)
    await leads(service, leader_epoch=1)
    await service.close()
    assert second.lines == ["loaded [9] in epoch 1", "stopped with [9]"]


async def test_a_load_that_fails_is_repeated(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a load the log start may move beyond the offset to read, or the disk may fail."""
    monkeypatch.setattr("data_plane.groups.service._LOAD_RETRY_S", 0)
    before = a_service(log)
    await leads(before)
    await before.commit(a_commit(5))
    failures: list[Exception] = [ApiError(ErrorCode.OFFSET_OUT_OF_RANGE), OSError("disk")]
    read = log.read

    def fails(partition: int, offset: int, max_bytes: int) -> bytes:
        if failures:
            raise failures.pop()
        return read(partition, offset, max_bytes)

    monkeypatch.setattr(log, "read", fails)
    after = a_service(log)
    async with asyncio.timeout(10):
        await leads(after, 1)
    assert await offset_of(after) == 5
    await before.close()
    await after.close()


async def test_a_commit_gets_its_response_if_the_connection_to_zookeeper_is_lost(
    service: GroupService, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first append to a topic reads the topic's configs from ZooKeeper."""

    async def fails(*_args: object, **_options: object) -> int:
        raise ConnectionLostError

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", fails)
        async with asyncio.timeout(10):
            errors = await service.commit(a_commit(5))
    assert errors == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert await service.commit(a_commit(6)) == {("t", 0): ErrorCode.NONE}
    _, offsets = await service.fetch("g", [("t", 0)], stable=True)
    assert offsets["t", 0].error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("count", "error"),
    [(8_000, ErrorCode.NONE), (20_000, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)],
)
async def test_offsets_that_fit_in_no_batch_are_not_encoded(
    count: int, error: ErrorCode, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand of them would keep the event loop for half a second."""
    encoded: list[object] = []
    encode = GroupRecord.encode

    def counted(record: GroupRecord) -> tuple[bytes, bytes | None]:
        encoded.append(record)
        return encode(record)

    monkeypatch.setattr(GroupRecord, "encode", counted)
    offsets = {("t", number): CommittedOffset(7, 3, "", 5) for number in range(count)}
    errors = await service.commit(Commit(group_id="g", offsets=offsets))
    assert set(errors.values()) == {error}
    assert len(encoded) == (count if error is ErrorCode.NONE else 0)
    _, fetched = await service.fetch("g", [("t", 5)], stable=True)
    assert (fetched["t", 5].committed is not None) is (error is ErrorCode.NONE)


async def test_a_commit_gets_its_response_if_its_append_fails_unexpectedly(
    service: GroupService, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, a ZooKeeper ACL may forbid the broker to read the topic's configs."""

    async def fails(*_args: object, **_options: object) -> int:
        raise RuntimeError("no ACL permits this")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", fails)
        async with asyncio.timeout(10):
            errors = await service.commit(a_commit(5))
    assert errors == {("t", 0): ErrorCode.UNKNOWN_SERVER_ERROR}
    assert await service.commit(a_commit(6)) == {("t", 0): ErrorCode.NONE}
