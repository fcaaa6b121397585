"""Faults of ZooKeeper: of its sessions, its znodes and its members."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Record, Target, TargetWithEnsemble


@asynccontextmanager
async def _expire_controller(target: Target, record: Record) -> AsyncIterator[None]:
    await target.expire(await target.controller())
    yield


@asynccontextmanager
async def _delete_controller_znode(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    with record(broker):
        await target.delete_znode("/controller")
        yield


@asynccontextmanager
async def _kill_zookeeper_leader(target: TargetWithEnsemble, record: Record) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    with record(f"zookeeper-{leader}"):
        await target.zookeeper.kill(leader)
        try:
            yield
        finally:
            await target.zookeeper.start(leader)


@asynccontextmanager
async def _empty_zookeeper_leader(
    target: TargetWithEnsemble, record: Record
) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    with record(f"zookeeper-{leader}"):
        await target.zookeeper.kill(leader)
        try:
            yield
        finally:
            await target.zookeeper.empty(leader)
            await target.zookeeper.start(leader)


@asynccontextmanager
async def _pause_zookeeper_leader(
    target: TargetWithEnsemble, record: Record
) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    await target.zookeeper.pause(leader)
    try:
        with record(f"zookeeper-{leader}"):
            yield
    finally:
        await target.zookeeper.resume(leader)


@asynccontextmanager
async def _pause_quorum(target: TargetWithEnsemble, record: Record) -> AsyncIterator[None]:
    members = target.zookeeper.members
    paused = members[len(members) // 2 :]
    for member in paused:
        await target.zookeeper.pause(member)
    try:
        with record(f"zookeeper-{paused[0]}"):
            yield
    finally:
        for member in paused:
            await target.zookeeper.resume(member)


EXPIRE_CONTROLLER = Fault(
    name="expire_controller",
    does="Another connection closes the controller's ZooKeeper session.",
    action="expire",
    effect="session_ended",
    inject=_expire_controller,
)
DELETE_CONTROLLER_ZNODE = Fault(
    name="delete_controller_znode",
    does="An operator deletes the znode /controller.",
    action="delete_controller_znode",
    effect="controller_resigned",
    inject=_delete_controller_znode,
)
KILL_ZOOKEEPER_LEADER = Fault(
    name="kill_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which then starts again.",
    action="kill_zookeeper_leader",
    effect="zookeeper_elected",
    inject=_kill_zookeeper_leader,
    needs=TargetWithEnsemble,
)
PAUSE_ZOOKEEPER_LEADER = Fault(
    name="pause_zookeeper_leader",
    does="SIGSTOP pauses ZooKeeper's leader until SIGCONT.",
    action="pause_zookeeper_leader",
    effect="zookeeper_elected",
    inject=_pause_zookeeper_leader,
    needs=TargetWithEnsemble,
)
EMPTY_ZOOKEEPER_LEADER = Fault(
    name="empty_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which starts again without its data.",
    action="empty_zookeeper_leader",
    effect="zookeeper_elected",
    inject=_empty_zookeeper_leader,
    needs=TargetWithEnsemble,
)
PAUSE_QUORUM = Fault(
    name="pause_quorum",
    does="SIGSTOP pauses so many members of ZooKeeper that no quorum is left.",
    action="pause_quorum",
    effect="nothing_was_committed",
    inject=_pause_quorum,
    needs=TargetWithEnsemble,
)

FAULTS: Final[tuple[Fault, ...]] = (
    EXPIRE_CONTROLLER,
    DELETE_CONTROLLER_ZNODE,
    KILL_ZOOKEEPER_LEADER,
    PAUSE_ZOOKEEPER_LEADER,
    EMPTY_ZOOKEEPER_LEADER,
    PAUSE_QUORUM,
)
