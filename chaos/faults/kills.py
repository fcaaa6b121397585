"""Faults that end a node's process, which then starts again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.failpoints import ELECTION_LOADING, REPLY_BEFORE
from chaos.fault import Fault, Record, Target


@asynccontextmanager
async def _killed(target: Target, broker: int) -> AsyncIterator[None]:
    """Kill a broker, and start it again at the end."""
    await target.kill(broker)
    try:
        yield
    finally:
        await target.start(broker)


@asynccontextmanager
async def _kill_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    async with _killed(target, broker):
        yield


@asynccontextmanager
async def _stop_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    await target.stop(broker)
    try:
        yield
    finally:
        await target.start(broker)


@asynccontextmanager
async def _kill_controller_before_reply(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.hold_at(REPLY_BEFORE)
    async with _killed(target, broker):
        yield


@asynccontextmanager
async def _kill_controller_while_loading(target: Target, record: Record) -> AsyncIterator[None]:
    before = await target.controller()
    held = asyncio.create_task(target.hold_at(ELECTION_LOADING))
    await asyncio.sleep(0)  # Lets the task arm the failpoint.
    await target.expire(before)
    broker = await held
    async with _killed(target, broker):
        yield


@asynccontextmanager
async def _kill_broker(target: Target, record: Record) -> AsyncIterator[None]:
    controller = await target.controller()
    broker = next(node for node in target.brokers if node != controller)
    async with _killed(target, broker):
        yield


KILL_CONTROLLER = Fault(
    name="kill_controller",
    does="SIGKILL ends the active controller's process, which then starts again.",
    action="kill",
    effect="process_was_killed",
    inject=_kill_controller,
)
STOP_CONTROLLER = Fault(
    name="stop_controller",
    does="SIGTERM stops the active controller's process, which then starts again.",
    action="stop",
    effect="process_stopped",
    inject=_stop_controller,
)
KILL_CONTROLLER_BEFORE_REPLY = Fault(
    name="kill_controller_before_reply",
    does="SIGKILL ends the active controller after a commit, before it answers the request.",
    action="kill",
    effect="process_was_killed",
    inject=_kill_controller_before_reply,
    has_failpoint=True,
)
KILL_CONTROLLER_WHILE_LOADING = Fault(
    name="kill_controller_while_loading",
    does="SIGKILL ends an elected controller before it loads the state.",
    action="kill",
    effect="process_was_killed",
    inject=_kill_controller_while_loading,
    has_failpoint=True,
)
KILL_BROKER = Fault(
    name="kill_broker",
    does="SIGKILL ends the process of a broker that is not the controller.",
    action="kill",
    effect="process_was_killed",
    inject=_kill_broker,
)

FAULTS: Final[tuple[Fault, ...]] = (
    KILL_CONTROLLER,
    STOP_CONTROLLER,
    KILL_CONTROLLER_BEFORE_REPLY,
    KILL_CONTROLLER_WHILE_LOADING,
    KILL_BROKER,
)
