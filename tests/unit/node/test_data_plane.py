"""The maintenance of a broker's logs during an outage of ZooKeeper."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_model.session_state import ConnectionLostError
from node.assembly.data_plane import DataPlane


@pytest.mark.parametrize("name", ["compaction", "retention"])
async def test_maintenance_waits_for_zookeeper_and_then_goes_on(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0
    done = asyncio.Event()

    async def work(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise ConnectionLostError("the connection broke")
        done.set()

    plane = SimpleNamespace(
        _retention_s=0.0,
        _number=lambda _: 0,
        _warn_of_full_disks=lambda: None,
        _compaction=SimpleNamespace(compact=work),
        partitions=SimpleNamespace(apply_retention=work, expire_producers=lambda _: None),
    )
    maintain = {"compaction": DataPlane._compact, "retention": DataPlane._apply_retention}[name]
    task = asyncio.create_task(maintain(cast(Any, plane)))
    await asyncio.wait_for(done.wait(), 10)
    task.cancel()
    assert caplog.text.count(f"{name} waits for ZooKeeper: the connection broke") == 2
    assert "Traceback" not in caplog.text
