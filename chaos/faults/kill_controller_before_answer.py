"""SIGKILL ends the active controller after a commit, before it answers the request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.failpoints import ANSWER_BEFORE
from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.hold_at(ANSWER_BEFORE)
    await target.kill(broker)
    try:
        yield
    finally:
        await target.start(broker)


KILL_CONTROLLER_BEFORE_ANSWER = Fault(
    name="kill_controller_before_answer",
    does="SIGKILL ends the active controller after a commit, before it answers the request.",
    inject=_inject,
    has_failpoint=True,
)
