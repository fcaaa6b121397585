"""A controller whose session ended during a pause writes nothing when it resumes.

With two seeded bugs it does write: it has no fence, and it resends commits in a new session. The
tests look for such writes in ZooKeeper's transaction log.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psutil
import pytest

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics
from judge.transaction_log import read_transactions

SESSION_TIMEOUT_S = 2.0
PROPERTIES = {"zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000))}


def events(cluster: Cluster, node: int, kind: str) -> list[dict[str, object]]:
    """Return a running node's events of one kind; the last line may still be incomplete."""
    lines = [
        json.loads(line)
        for path in sorted((cluster.evidence_dir / f"node={node}").glob("*.jsonl"))
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return [line for line in lines if line["kind"] == kind]


async def pause_under_load(cluster: Cluster) -> tuple[int, int]:
    """Pause the controller's process under load until another broker is the active controller.

    Returns the paused broker and the zxid of its successor's election.
    """
    controller = cluster.wait_for_controller()
    # The clients use the controller's own broker, so that the controller's queue is not empty.
    address = cluster.bootstrap_server(controller)
    connections = [await AsyncConnection.open(address) for _ in range(32)]
    done = asyncio.Event()

    async def write(number: int, connection: AsyncConnection) -> None:
        count = 0
        while not done.is_set():
            count += 1
            await connection.exchange(create_topics([f"zombie-{number}-{count}"]))

    writers = [
        asyncio.create_task(write(number, connection))
        for number, connection in enumerate(connections)
    ]
    await asyncio.sleep(0)
    while len(events(cluster, controller, "commit_acknowledged")) < 20:
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
        # If the paused controller writes later, ZooKeeper's log has the write after this topic.
        address = cluster.bootstrap_server(successor)
        await (await AsyncConnection.open(address)).exchange(create_topics(["successor"]))
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
    """Return the zxids after `elected` at which the first controller's sessions wrote metadata."""
    sessions = {
        event["session"]
        for event in events(cluster, controller, "commit_acknowledged")
        if isinstance(event["zxid"], int)
    }
    document = json.loads((cluster.data_dir / "cluster.json").read_text())
    folder = Path(document["zookeeper"]["data_dir"])
    return [
        transaction.zxid
        for transaction in read_transactions(folder)
        if transaction.zxid > elected
        and f"0x{transaction.session:x}" in sessions
        and _is_metadata(transaction)
    ]


def _is_metadata(transaction: object) -> bool:
    operations = getattr(transaction, "operations", ())
    return any(
        getattr(operation, "path", "").startswith(("/brokers/topics", "/config"))
        for operation in operations
    ) and not getattr(transaction, "failed", False)


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_paused_controller_writes_nothing_after_its_successors_election() -> None:
    with Cluster(brokers=3, properties=PROPERTIES) as cluster:
        controller, elected = await pause_under_load(cluster)
        assert _wrote(cluster, controller, elected) == []


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_paused_controller_without_the_fence_writes_after_its_successor() -> None:
    command = module_command("chaos.mutant_node", "--mutants", "fence_off,retry_across_sessions")
    with Cluster(brokers=3, properties=PROPERTIES, node_command=command) as cluster:
        controller, elected = await pause_under_load(cluster)
        assert _wrote(cluster, controller, elected) != []
