"""Faults that hold the controller's process, or its event loop, for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.failpoints import COMMIT_BEFORE_SEND, ENVELOPE_RECEIVED
from chaos.fault import Fault, Record, Target, TargetWithThreads


@asynccontextmanager
async def _pause_controller(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.controller()
    await target.pause(broker)
    try:
        # The process is paused during the whole recorded interval.
        with record(broker):
            yield
    finally:
        await target.resume(broker)


@asynccontextmanager
async def _pause_controller_before_commit(target: Target, record: Record) -> AsyncIterator[None]:
    broker = await target.hold_at(COMMIT_BEFORE_SEND)
    try:
        with record(broker):
            yield
    finally:
        await target.resume(broker)


@asynccontextmanager
async def _block_controller(target: TargetWithThreads, record: Record) -> AsyncIterator[None]:
    broker = await target.block_at(ENVELOPE_RECEIVED)
    try:
        with record(broker):
            yield
    finally:
        await target.unblock(broker)


PAUSE_CONTROLLER = Fault(
    name="pause_controller",
    does="SIGSTOP pauses the active controller's process until SIGCONT.",
    action="pause",
    effect="process_was_silent",
    inject=_pause_controller,
)
PAUSE_CONTROLLER_BEFORE_COMMIT = Fault(
    name="pause_controller_before_commit",
    does="SIGSTOP pauses the active controller just before it sends a commit.",
    action="pause",
    effect="process_was_silent",
    inject=_pause_controller_before_commit,
    has_failpoint=True,
)
BLOCK_CONTROLLER = Fault(
    name="block_controller",
    does="The event loop of the active controller's process is blocked.",
    action="block",
    effect="process_was_silent",
    inject=_block_controller,
    needs=TargetWithThreads,
    has_failpoint=True,
)

FAULTS: Final[tuple[Fault, ...]] = (
    PAUSE_CONTROLLER,
    PAUSE_CONTROLLER_BEFORE_COMMIT,
    BLOCK_CONTROLLER,
)
