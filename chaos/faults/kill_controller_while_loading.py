"""SIGKILL ends an elected controller before it loads the state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.failpoints import ELECTION_LOADING
from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    before = await target.controller()
    held = asyncio.create_task(target.hold_at(ELECTION_LOADING))
    await asyncio.sleep(0)  # Lets the task arm the failpoint.
    await target.expire(before)
    broker = await held
    await target.kill(broker)
    try:
        yield
    finally:
        await target.start(broker)


KILL_CONTROLLER_WHILE_LOADING = Fault(
    name="kill_controller_while_loading",
    does="SIGKILL ends an elected controller before it loads the state.",
    inject=_inject,
    has_failpoint=True,
)
