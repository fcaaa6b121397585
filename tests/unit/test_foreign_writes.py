"""What others write is read before whoever waits for it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from controller.foreign_writes import ForeignWrites
from tests.unit.loop_bench import Term
from tests.unit.test_direct_writes import Znodes
from zookeeper_client.wire import Read, ReadResult

DEFAULTS = ConfigResource("brokers", "<default>")
WRITTEN = {"log.cleaner.threads": "2"}


async def test_whoever_waits_goes_on_when_the_image_holds_what_was_seen() -> None:
    """Also when the connection breaks at the first reading."""
    term, znodes, broken = Term(), Znodes(**WRITTEN), [True]

    async def read(reads: Sequence[Read]) -> list[ReadResult]:
        if broken:
            broken.pop()
            raise ConnectionLostError("it broke")
        return await znodes.read(reads)

    foreign = ForeignWrites(lambda: term.loop, lambda: read)
    await foreign.settled()  # Nothing was seen: nothing is waited for.
    foreign.config_seen(DEFAULTS, WRITTEN)
    running = asyncio.create_task(term.loop.run())
    await foreign.settled()
    assert not broken
    assert term.loop.image.configs[DEFAULTS] == WRITTEN
    running.cancel()


async def test_whoever_waits_goes_on_when_office_is_over() -> None:
    """The next in office loads everything; here nobody reads any more."""
    term, znodes = Term(), Znodes(**WRITTEN)
    foreign = ForeignWrites(lambda: term.loop, lambda: znodes.read)
    foreign.config_seen(DEFAULTS, WRITTEN)
    waiting = asyncio.create_task(foreign.settled())
    await asyncio.sleep(0)
    assert not waiting.done()
    foreign.office_is_over()
    await waiting
    assert DEFAULTS not in term.loop.image.configs
