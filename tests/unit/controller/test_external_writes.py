"""Changes by others reach the image before caught_up() returns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from controller.external_writes import ExternalWrites
from tests.unit.controller.loop_bench import Term
from tests.unit.controller.test_direct_writes import Znodes
from zookeeper_client.wire import Read, ReadResult

DEFAULTS = ConfigResource("brokers", "<default>")
WRITTEN = {"log.cleaner.threads": "2"}


async def test_caught_up_waits_until_the_image_has_the_change() -> None:
    """The first read fails, because its connection is lost."""
    term, znodes, broken = Term(), Znodes(**WRITTEN), [True]

    async def read(reads: Sequence[Read]) -> list[ReadResult]:
        if broken:
            broken.pop()
            raise ConnectionLostError("it broke")
        return await znodes.read(reads)

    external = ExternalWrites()
    external.start(term.loop, read)
    await external.caught_up()
    external.config_seen(DEFAULTS, WRITTEN)
    running = asyncio.create_task(term.loop.run())
    await external.caught_up()
    assert not broken
    assert term.loop.image.configs[DEFAULTS] == WRITTEN
    running.cancel()


async def test_caught_up_returns_when_the_term_ends() -> None:
    term, znodes = Term(), Znodes(**WRITTEN)
    external = ExternalWrites()
    external.start(term.loop, znodes.read)
    external.config_seen(DEFAULTS, WRITTEN)
    waiting = asyncio.create_task(external.caught_up())
    await asyncio.sleep(0)
    assert not waiting.done()
    external.stop()
    await waiting
    assert DEFAULTS not in term.loop.image.configs
