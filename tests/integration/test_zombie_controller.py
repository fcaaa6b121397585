"""A controller paused past its session wakes up and writes nothing; without the fence it does.

The witness is ZooKeeper's transaction log: whatever a session of the old controller wrote after
its successor's election is there, whoever claims what.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import psutil
import pytest

from bench.frames import Connection, create_topics_frame
from bridgehead.cluster import Cluster
from chaos.witness import read_transactions

SESSION_TIMEOUT_S = 2.0
PROPERTIES = {"zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000))}
MUTANT_NODE = (sys.executable, str(Path(__file__).parent / "mutant_node.py"))


def events(cluster: Cluster, node: int, kind: str) -> list[dict[str, object]]:
    """Of a node at work: its last line may be half written."""
    lines = [
        json.loads(line)
        for path in sorted((cluster.evidence_dir / f"node={node}").glob("*.jsonl"))
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return [line for line in lines if line["kind"] == kind]


async def pause_under_load(cluster: Cluster) -> tuple[int, int]:
    """Freeze the controller's process with work in its queue until somebody else is in office.

    Returns the paused broker and its successor's election zxid.
    """
    controller = cluster.wait_for_controller()
    # Clients of the controller's own broker: their requests are in its queue when it stops.
    connections = [await Connection.open(cluster.bootstrap_server(controller)) for _ in range(32)]
    done = asyncio.Event()

    async def write(number: int, connection: Connection) -> None:
        count = 0
        while not done.is_set():
            count += 1
            frame = create_topics_frame([f"zombie-{number}-{count}"])
            await connection.ask(frame)

    writers = [asyncio.create_task(write(number, each)) for number, each in enumerate(connections)]
    await asyncio.sleep(0)
    while len(events(cluster, controller, "commit_answered")) < 20:
        await asyncio.sleep(0.02)
    process = psutil.Process(cluster.brokers[controller].pid)
    process.suspend()
    try:
        successor = await asyncio.to_thread(
            cluster.wait_for_controller, timeout_s=30, other_than=controller
        )
        while not events(cluster, successor, "became_active"):
            await asyncio.sleep(0.05)
        elected = events(cluster, successor, "became_active")[-1]["zxid"]
        # The successor has written, so that a zombie's write would come after it.
        address = cluster.bootstrap_server(successor)
        await (await Connection.open(address)).ask(create_topics_frame(["successor"]))
    finally:
        process.resume()
    assert isinstance(elected, int)
    while not events(cluster, controller, "resigned") and not _wrote(cluster, controller, elected):
        await asyncio.sleep(0.05)
    done.set()
    await asyncio.wait(writers, timeout=SESSION_TIMEOUT_S * 3)
    for writer in writers:
        writer.cancel()
    return controller, elected


def _wrote(cluster: Cluster, controller: int, elected: int) -> list[int]:
    """Return the zxids of metadata that sessions of `controller`'s first term wrote afterwards."""
    sessions = {
        each["session"]
        for each in events(cluster, controller, "commit_answered")
        if isinstance(each["zxid"], int)
    }
    document = json.loads((cluster.data_dir / "cluster.json").read_text())
    folder = Path(document["zookeeper"]["data_dir"])
    return [
        each.zxid
        for each in read_transactions(folder)
        if each.zxid > elected and f"0x{each.session:x}" in sessions and _is_metadata(each)
    ]


def _is_metadata(transaction: object) -> bool:
    operations = getattr(transaction, "operations", ())
    return any(
        getattr(operation, "path", "").startswith(("/brokers/topics", "/config"))
        for operation in operations
    ) and not getattr(transaction, "failed", False)


@pytest.mark.timeout(120)
async def test_a_paused_controller_wakes_up_and_writes_nothing() -> None:
    """
    After its successor's election no session of the old term has written metadata.
    """
    with Cluster(brokers=3, properties=PROPERTIES) as cluster:
        controller, elected = await pause_under_load(cluster)
        assert _wrote(cluster, controller, elected) == []


@pytest.mark.timeout(120)
async def test_without_the_fence_a_paused_controller_writes_after_its_successor() -> None:
    """
    The same pause with the seeded bug is caught: the test above can fail.
    """
    command = (*MUTANT_NODE, "--mutants", "fence_off,retry_across_sessions")
    with Cluster(brokers=3, properties=PROPERTIES, node_command=command) as cluster:
        controller, elected = await pause_under_load(cluster)
        assert _wrote(cluster, controller, elected) != []
