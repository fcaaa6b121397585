"""Measures how long a new controller takes to load a large cluster's state from ZooKeeper.

After a failover, every write waits until the new controller has loaded the state. The benchmark
checks that the loaded state equals the written one, field by field.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.large_state import PARTITIONS, write
from bench.report import Plan, progress, spread
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from cluster_model.znodes.acls import ACL_PATHS
from cluster_model.znodes.tokens import TOKEN_PATHS
from controller.store.load import load
from controller.store.zookeeper import ZooKeeperStore
from event_log.writer import NullEventLog


async def _measure(connect: str, topics: int, rounds: int) -> list[str]:
    store = ZooKeeperStore(
        connect,
        session_timeout_ms=30_000,
        on_state=lambda _state: None,
        log=NullEventLog(),
        now_s=time.monotonic,
    )
    await store.open(10)
    try:
        await store.ensure_start_up_paths("loading", (*TOKEN_PATHS, *ACL_PATHS))
        fence = await store.elect(1, 0)
        assert fence is not None
        progress(f"loading: writing {topics} topics")
        began = time.monotonic()
        written = await write(store, fence, topics)
        took_s = time.monotonic() - began
        loads = []
        for number in range(rounds):
            progress(f"loading: round {number + 1}")
            began = time.monotonic()
            loaded = await load(store.read, fence.epoch)
            loads.append(time.monotonic() - began)
            if replace(loaded.image, brokers=written.brokers) != written or loaded.invalid:
                raise RuntimeError("the loaded state differs from the written one")
    finally:
        await store.close()
    return [
        f"{topics} topics of {PARTITIONS} partitions, {len(written.configs)} configs and quotas, "
        f"{len(written.tokens)} tokens: loaded in {spread(loads, 's', 2)}, equal to the "
        f"written state (written in {took_s:.1f} s)"
    ]


def run(plan: Plan) -> list[str]:
    """Write a large state once and load it several times."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedZooKeeper(Path(folder), [Ports().choose()], java=find_java())
        server.start()
        try:
            server.wait_until_serving()
            topics = 1_000 if plan.quick else 10_000
            return asyncio.run(_measure(server.connect, topics, plan.rounds(5)))
        finally:
            server.stop()
