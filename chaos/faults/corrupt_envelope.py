"""An Envelope reaches the controller with overwritten bytes.

The scenario needs `bridgehead.grpc.tls=false`: in encrypted bytes, the proxy finds no Envelope.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fault import Fault, Target


@asynccontextmanager
async def _inject(target: Target) -> AsyncIterator[None]:
    broker = await target.controller()
    with target.recorded("corrupt_envelope", broker):
        await target.network.corrupt_envelope(broker)
        yield


CORRUPT_ENVELOPE = Fault(
    name="corrupt_envelope",
    does="An Envelope reaches the controller with overwritten bytes.",
    inject=_inject,
    breaks_links=True,
)
