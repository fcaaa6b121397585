"""Changes by other writers reach the image before caught_up() returns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

from bridgehead.authorizer import AccessControlEntry, Permission, ResourcePattern
from cluster_model.records import ConfigResource
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.acls import AclZnode
from cluster_model.znodes.layout import ConfigZnode
from controller.term.external_writes import ExternalWrites
from controller.term.skipped_znodes import SkippedZnodes
from tests.unit.controller.loop_bench import Term
from tests.unit.controller.test_direct_writes import Znodes
from tests.unit.controller.topic_decisions import image
from zookeeper_client.wire import Read, ReadResult, ZnodeData

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
    external.start(term.loop, read, SkippedZnodes())
    await external.caught_up()
    external.config_seen(DEFAULTS, WRITTEN)
    running = asyncio.create_task(term.loop.run())
    await external.caught_up()
    assert not broken
    assert term.loop.image.configs[DEFAULTS] == WRITTEN
    running.cancel()


async def test_acls_that_were_deleted_and_created_again_reach_the_image() -> None:
    """The new znode has the same version as the deleted one."""
    pattern = ResourcePattern("TOPIC", "LITERAL", "t")
    before, after = (
        (AccessControlEntry("User:alice", "*", "READ", permission),)
        for permission in get_args(Permission)
    )
    term = Term(before=image().with_acl(pattern, before, 0))
    znode = ZnodeData(AclZnode.encode(after), bytes(68))

    async def read(_reads: Sequence[Read]) -> list[ReadResult]:
        return [znode]

    external = ExternalWrites()
    external.start(term.loop, read, SkippedZnodes())
    external.acl_seen(pattern, before, 0)
    await external.caught_up()
    external.acl_seen(pattern, after, 0)
    running = asyncio.create_task(term.loop.run())
    await external.caught_up()
    running.cancel()
    assert term.loop.image.acls.entries(pattern) == after


async def test_caught_up_returns_when_the_term_ends() -> None:
    term, znodes = Term(), Znodes(**WRITTEN)
    external = ExternalWrites()
    external.start(term.loop, znodes.read, SkippedZnodes())
    external.config_seen(DEFAULTS, WRITTEN)
    waiting = asyncio.create_task(external.caught_up())
    await asyncio.sleep(0)
    assert not waiting.done()
    external.stop()
    await waiting
    assert DEFAULTS not in term.loop.image.configs


async def test_a_znode_is_named_while_it_is_invalid() -> None:
    """Other programs damage and repair it while a controller is active."""
    term, znodes = Term(), Znodes(**WRITTEN)
    path = ConfigZnode.path(DEFAULTS)
    skipped, external = SkippedZnodes([f"{path}s: another znode"]), ExternalWrites()
    content = b'{"version":1,"config":{"log.cleaner.threads":[2]}}'

    async def read(reads: Sequence[Read]) -> list[ReadResult]:
        return [ZnodeData(content, bytes(68))] if content else await znodes.read(reads)

    external.start(term.loop, read, skipped)
    running = asyncio.create_task(term.loop.run())
    external.config_seen(DEFAULTS, WRITTEN)
    await external.caught_up()
    assert skipped.errors == (f"{path}: an array instead of a string", f"{path}s: another znode")
    content = b""
    external.config_seen(DEFAULTS, WRITTEN)
    await external.caught_up()
    assert skipped.errors == (f"{path}s: another znode",)
    assert term.loop.image.configs[DEFAULTS] == WRITTEN
    running.cancel()
