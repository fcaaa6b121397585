"""Faults of ZooKeeper: of its sessions, its znodes and its members."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.fault import Fault, Target


@asynccontextmanager
async def _expire_controller(target: Target) -> AsyncIterator[None]:
    await target.expire(await target.controller())
    yield


@asynccontextmanager
async def _delete_controller_znode(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("delete_controller_znode", broker):
        await target.delete_znode("/controller")
        yield


@asynccontextmanager
async def _kill_zookeeper_leader(target: Target) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    with target.recorded("kill_zookeeper_leader", f"zookeeper-{leader}"):
        await target.zookeeper.kill(leader)
        try:
            yield
        finally:
            await target.zookeeper.start(leader)


@asynccontextmanager
async def _empty_zookeeper_leader(target: Target) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    with target.recorded("kill_zookeeper_leader", f"zookeeper-{leader}"):
        await target.zookeeper.kill(leader)
        try:
            yield
        finally:
            await target.zookeeper.erase(leader)
            await target.zookeeper.start(leader)


@asynccontextmanager
async def _pause_zookeeper_leader(target: Target) -> AsyncIterator[None]:
    leader = await target.zookeeper.leader()
    await target.zookeeper.pause(leader)
    try:
        with target.recorded("freeze_zookeeper_leader", f"zookeeper-{leader}"):
            yield
    finally:
        await target.zookeeper.resume(leader)


@asynccontextmanager
async def _pause_quorum(target: Target) -> AsyncIterator[None]:
    members = target.zookeeper.members
    paused = members[len(members) // 2 :]
    for member in paused:
        await target.zookeeper.pause(member)
    try:
        with target.recorded("freeze_zookeeper", f"zookeeper-{paused[0]}"):
            yield
    finally:
        for member in paused:
            await target.zookeeper.resume(member)


EXPIRE_CONTROLLER = Fault(
    name="expire_controller",
    does="Another connection closes the controller's ZooKeeper session.",
    inject=_expire_controller,
)
DELETE_CONTROLLER_ZNODE = Fault(
    name="delete_controller_znode",
    does="An operator deletes the znode /controller.",
    inject=_delete_controller_znode,
)
KILL_ZOOKEEPER_LEADER = Fault(
    name="kill_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which then starts again.",
    inject=_kill_zookeeper_leader,
)
PAUSE_ZOOKEEPER_LEADER = Fault(
    name="pause_zookeeper_leader",
    does="SIGSTOP pauses ZooKeeper's leader until SIGCONT.",
    inject=_pause_zookeeper_leader,
)
EMPTY_ZOOKEEPER_LEADER = Fault(
    name="empty_zookeeper_leader",
    does="SIGKILL ends ZooKeeper's leader, which starts again without its data.",
    inject=_empty_zookeeper_leader,
)
PAUSE_QUORUM = Fault(
    name="pause_quorum",
    does="SIGSTOP pauses so many members of ZooKeeper that no quorum is left.",
    inject=_pause_quorum,
)

FAULTS: Final[tuple[Fault, ...]] = (
    EXPIRE_CONTROLLER,
    DELETE_CONTROLLER_ZNODE,
    KILL_ZOOKEEPER_LEADER,
    PAUSE_ZOOKEEPER_LEADER,
    EMPTY_ZOOKEEPER_LEADER,
    PAUSE_QUORUM,
)
