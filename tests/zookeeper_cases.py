"""What a ZooKeeper session must do, as cases for the simulated and for a real ZooKeeper.

A case is a function. It opens sessions with its argument and returns what it observed in them. This
must equal the case's value in EXPECTED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from cluster_model.session_state import ConnectionLostError, SessionState
from cluster_model.znodes.operations import Check, Create, Delete, Operation, SetData
from zookeeper_client.session import NoSuchZnodeError, ZooKeeperSession
from zookeeper_client.wire import Read, ReadChildren, ReadData, Stat, ZnodeData

OpenSession = Callable[[], Awaitable[ZooKeeperSession]]
Case = Callable[[OpenSession], Awaitable[Any]]


async def write(session: ZooKeeperSession, *operations: Operation) -> tuple[int | None, int]:
    """Return the index of the operation that failed, and its error code."""
    result = await session.multi([session.encode(operation) for operation in operations])
    return result.failed_index, result.error_code


def counts(stat: Stat | None) -> tuple[int, ...] | None:
    """Return the versions, the data length and the number of children in a stat."""
    if stat is None:
        return None
    return stat.version, stat.cversion, stat.aversion, stat.data_length, stat.num_children


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def a_znode_has_data_a_stat_and_children(open_session: OpenSession) -> Any:
    session = await open_session()
    await write(session, Create("/a", b"one"), Create("/a/b"), Create("/a/c", b""))
    await write(session, SetData("/a", b"three"))
    znode = await session.get("/a")
    empty = (await session.get("/a/c")).data
    none = (await session.get("/a/b")).data
    return znode.data, counts(znode.stat), empty, none, sorted(await session.children("/a"))


async def deleted_children_count_in_cversion(open_session: OpenSession) -> Any:
    session = await open_session()
    await write(session, Create("/a"))
    for name in ("x", "y"):
        await write(session, Create(f"/a/{name}"))
    await write(session, Delete("/a/x"))
    return counts(await session.exists("/a"))


async def a_rejected_multi_names_its_operation_and_changes_nothing(
    open_session: OpenSession,
) -> Any:
    session = await open_session()
    await write(session, Create("/a", b"0"), Create("/a/b"))
    await write(session, SetData("/a", b"1"))
    rejected = [
        await write(session, Create("/n"), Create("/a")),
        await write(session, Create("/n"), SetData("/a", b"2", 0)),
        await write(session, Create("/n"), Check("/a", 0)),
        await write(session, Create("/n"), Delete("/a", 1)),
        await write(session, Create("/n"), Create("/missing/child")),
        await write(session, Create("/n"), SetData("/missing", b"")),
        await write(session, Create("/n"), Delete("/missing")),
        await write(session, Create("/n"), Check("/missing", 0)),
        await write(session, Create("/n", ephemeral=True), Create("/n/child")),
        await write(session, SetData("/a", b"3"), Check("/a", 1)),
        await write(session, Delete("/a/b"), Create("/a/b"), Create("/a/c"), Check("/a", 0)),
        await write(session, Create("/a/c"), Delete("/a/c"), Delete("/a/b"), Check("/a", 0)),
    ]
    znode = await session.get("/a")
    children = await session.children("/a")
    return rejected, znode.data, counts(znode.stat), children, await session.exists("/n")


async def later_operations_see_the_earlier_ones_of_their_multi(open_session: OpenSession) -> Any:
    session = await open_session()
    done = await write(
        session,
        Create("/a", b"0"),
        SetData("/a", b"1", 0),
        Check("/a", 1),
        Create("/a/b"),
        Delete("/a/b", 0),
        Delete("/a", 1),
        Create("/a", b"new"),
    )
    return done, (await session.get("/a")).data, counts(await session.exists("/a"))


async def sequential_names_count_the_creations(open_session: OpenSession) -> Any:
    session = await open_session()
    await write(session, Create("/q"))
    await write(session, Create("/q/n-", sequential=True), Create("/q/n-", sequential=True))
    await write(session, Delete("/q/n-0000000000"))
    await write(session, Create("/q/n-", b"x", sequential=True))
    return sorted(await session.children("/q"))


async def zxids_order_the_writes(open_session: OpenSession) -> Any:
    session = await open_session()
    first = await session.multi([session.encode(Create("/a")), session.encode(Create("/b"))])
    second = await session.multi([session.encode(SetData("/a", b"x"))])
    stat, other = await session.exists("/a"), await session.exists("/b")
    assert stat is not None
    assert other is not None
    assert session.last_zxid >= second.zxid
    same = stat.czxid == first.zxid == other.czxid
    return same, stat.mzxid == second.zxid, second.zxid > first.zxid


async def reads_of_one_request_return_results_in_order(open_session: OpenSession) -> Any:
    session = await open_session()
    await write(session, Create("/a", b"1"), Create("/a/b"))
    reads: list[Read] = [
        ReadData("/a"),
        ReadData("/missing"),
        ReadChildren("/a"),
        ReadChildren("/missing"),
    ]
    data, *others = await session.read(reads)
    assert isinstance(data, ZnodeData)
    return data.data, others


async def a_missing_znode_is_an_error_of_its_own(open_session: OpenSession) -> Any:
    session = await open_session()
    errors = []
    for request in (session.get("/missing"), session.children("/missing")):
        try:
            await request
        except NoSuchZnodeError:
            errors.append("missing")
    return errors


async def ephemeral_znodes_end_with_their_session(open_session: OpenSession) -> Any:
    session, other = await open_session(), await open_session()
    await write(session, Create("/e", b"x", ephemeral=True), Create("/p"))
    stat = await other.exists("/e")
    assert stat is not None
    is_owner = stat.ephemeral_owner & (2**64 - 1) == session.session_id
    await session.close()
    return is_owner, await other.exists("/e"), counts(await other.exists("/p"))


async def an_expired_session_is_lost_and_rejects_requests(open_session: OpenSession) -> Any:
    session, other = await open_session(), await open_session()
    await write(session, Create("/e", ephemeral=True))
    await session.expire()
    await until(lambda: session.state is SessionState.LOST)
    try:
        await session.get("/e")
    except ConnectionLostError as lost:
        return type(lost).__name__, await other.exists("/e")


async def _fired(
    open_session: OpenSession, set_watch: Callable[[ZooKeeperSession, Any], Awaitable[Any]]
) -> list[str]:
    """Return which changes fire a watch that is set again before each change."""
    session, other = await open_session(), await open_session()
    await write(other, Create("/w", b"0"), Create("/w/old"))
    changes: list[tuple[str, Operation]] = [
        ("set", SetData("/w", b"1")),
        ("new child", Create("/w/new")),
        ("set child", SetData("/w/new", b"1")),
        ("deleted child", Delete("/w/old")),
        ("other", Create("/other")),
    ]
    fired = []
    for name, change in changes:
        seen = asyncio.Event()
        await set_watch(session, seen.set)
        await write(other, change)
        await session.sync()  # The event of a watch arrives before the reply to sync.
        await asyncio.sleep(0)
        fired += [name] if seen.is_set() else []
    return fired


async def a_watch_on_data_fires_for_data(open_session: OpenSession) -> Any:
    return await _fired(open_session, lambda session, watch: session.get("/w", watch))


async def a_watch_on_existence_fires_for_data(open_session: OpenSession) -> Any:
    return await _fired(open_session, lambda session, watch: session.exists("/w", watch))


async def a_watch_on_children_fires_for_their_names(open_session: OpenSession) -> Any:
    return await _fired(open_session, lambda session, watch: session.children("/w", watch))


async def watches_fire_once_and_also_for_creation_and_deletion(open_session: OpenSession) -> Any:
    session, other = await open_session(), await open_session()
    seen: list[str] = []
    await session.exists("/w", lambda: seen.append("created"))
    await write(other, Create("/w"))
    await session.sync()
    await until(lambda: len(seen) == 1)
    await session.get("/w", lambda: seen.append("data gone"))
    await session.children("/w", lambda: seen.append("children gone"))
    await write(other, Delete("/w"))
    await write(other, Create("/w"))
    await session.sync()
    await until(lambda: len(seen) == 3)
    return sorted(seen)


async def a_watch_of_a_read_that_found_nothing_is_not_set(open_session: OpenSession) -> Any:
    session, other = await open_session(), await open_session()
    seen: list[str] = []
    for read in (session.get, session.children):
        try:
            await read("/w", lambda: seen.append("fired"))
        except NoSuchZnodeError:
            continue
    await write(other, Create("/w"))
    await session.sync()
    await asyncio.sleep(0)
    return seen


async def all_watches_fire_when_the_session_ends(open_session: OpenSession) -> Any:
    session = await open_session()
    await write(session, Create("/w"))
    seen: list[str] = []
    await session.get("/w", lambda: seen.append("data"))
    await session.children("/w", lambda: seen.append("children"))
    await session.exists("/missing", lambda: seen.append("existence"))
    await session.expire()
    await until(lambda: session.state is SessionState.LOST)
    await until(lambda: len(seen) == 3)
    return sorted(seen)


async def a_watch_event_arrives_before_the_reply_that_shows_its_change(
    open_session: OpenSession,
) -> Any:
    session, other = await open_session(), await open_session()
    await write(other, Create("/w", b"0"))
    order: list[str] = []
    await session.get("/w", lambda: order.append("event"))
    await write(other, SetData("/w", b"1"))
    data = (await session.get("/w")).data
    order.append(f"reply {data!r}")
    return order


async def a_watch_below_names_every_change_of_a_tree(open_session: OpenSession) -> Any:
    """The root need not exist, and its deletion does not end the watch."""
    session, other = await open_session(), await open_session()
    seen: list[str] = []
    await session.watch_below("/w", seen.append)
    for change in (
        *(Create("/w"), Create("/w/n-", sequential=True), SetData("/w/n-0000000000", b"1")),
        *(Create("/wx"), Create("/w/a"), Create("/w/a/b"), Delete("/w/a/b"), Delete("/w/a")),
        *(Delete("/w/n-0000000000"), Delete("/w"), Create("/w")),
    ):
        await write(other, change)
    await session.sync()
    await asyncio.sleep(0)
    return seen, session.watches_below("/w"), session.watches_below("/wx")


async def a_watch_below_ends_silently_with_the_session(open_session: OpenSession) -> Any:
    session, other = await open_session(), await open_session()
    seen: list[str] = []
    await session.watch_below("/w", seen.append)
    await session.expire()
    await until(lambda: session.state is SessionState.LOST)
    await write(other, Create("/w"))
    return seen, session.watches_below("/w")


NO_NODE, BAD_VERSION, NODE_EXISTS, EPHEMERAL, NOT_EMPTY = -101, -103, -110, -108, -111

EXPECTED: Final[dict[Case, Any]] = {
    a_znode_has_data_a_stat_and_children: (b"three", (1, 2, 0, 5, 2), b"", None, ["b", "c"]),
    deleted_children_count_in_cversion: (0, 3, 0, 0, 1),
    a_rejected_multi_names_its_operation_and_changes_nothing: (
        [
            (1, NODE_EXISTS),
            (1, BAD_VERSION),
            (1, BAD_VERSION),
            (1, NOT_EMPTY),
            (1, NO_NODE),
            (1, NO_NODE),
            (1, NO_NODE),
            (1, NO_NODE),
            (1, EPHEMERAL),
            (1, BAD_VERSION),
            (3, BAD_VERSION),
            (3, BAD_VERSION),
        ],
        b"1",
        (1, 1, 0, 1, 1),
        ["b"],
        None,
    ),
    later_operations_see_the_earlier_ones_of_their_multi: (
        (None, 0),
        b"new",
        (0, 0, 0, 3, 0),
    ),
    sequential_names_count_the_creations: ["n-0000000001", "n-0000000002"],
    zxids_order_the_writes: (True, True, True),
    reads_of_one_request_return_results_in_order: (b"1", [None, ["b"], None]),
    a_missing_znode_is_an_error_of_its_own: ["missing", "missing"],
    ephemeral_znodes_end_with_their_session: (True, None, (0, 0, 0, 0, 0)),
    an_expired_session_is_lost_and_rejects_requests: ("SessionLostError", None),
    a_watch_on_data_fires_for_data: ["set"],
    a_watch_on_existence_fires_for_data: ["set"],
    a_watch_on_children_fires_for_their_names: ["new child", "deleted child"],
    watches_fire_once_and_also_for_creation_and_deletion: [
        "children gone",
        "created",
        "data gone",
    ],
    a_watch_of_a_read_that_found_nothing_is_not_set: [],
    all_watches_fire_when_the_session_ends: ["children", "data", "existence"],
    a_watch_event_arrives_before_the_reply_that_shows_its_change: ["event", "reply b'1'"],
    a_watch_below_names_every_change_of_a_tree: (
        [
            *("/w", "/w/n-0000000000", "/w/n-0000000000", "/w/a", "/w/a/b", "/w/a/b", "/w/a"),
            *("/w/n-0000000000", "/w", "/w"),
        ],
        True,
        False,
    ),
    a_watch_below_ends_silently_with_the_session: ([], False),
}
