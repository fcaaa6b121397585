"""SIGSTOP pauses the active controller just before it sends a commit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.failpoints import COMMIT_BEFORE_SEND
from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.hold_at(COMMIT_BEFORE_SEND)
    try:
        with target.recorded("freeze", broker):
            yield
    finally:
        await target.resume(broker)


PAUSE_CONTROLLER_BEFORE_COMMIT = Fault(
    name="pause_controller_before_commit",
    does="SIGSTOP pauses the active controller just before it sends a commit.",
    inject=_inject,
    has_failpoint=True,
)
