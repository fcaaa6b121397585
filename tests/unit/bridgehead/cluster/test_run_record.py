"""The harness's events while the disk is full."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from bridgehead.cluster.run_record import RunRecord
from bridgehead.cluster.running_cluster import RunningCluster
from bridgehead.cluster.settings import ClusterSettings

KILLED = SimpleNamespace(id=1, exit_status=lambda: -9)


def started(folder: Path, said: list[str]) -> RunRecord:
    record = RunRecord(folder, ClusterSettings(data_dir=folder), said.append)
    record.start(chroot="", log_folders=None)
    record.node_folder(1).mkdir()
    (record.node_folder(1) / "events-b1-0000.jsonl").touch()
    return record


def ends(record: RunRecord) -> list[tuple[str, int]]:
    (file,) = (record.folder / "harness=supervisor").iterdir()
    events: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    return [(e["ended_boot"], e["status"]) for e in events if e["kind"] == "node_ended"]


def fill_the_disk(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "write", Mock(side_effect=OSError("No space left on device")))


def test_the_end_of_a_node_is_recorded_when_the_disk_has_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = started(tmp_path, [])
    with monkeypatch.context() as patch:
        fill_the_disk(patch)
        with pytest.raises(OSError, match="No space left"):
            record.note_ends([KILLED])
    assert ends(record) == []
    record.note_ends([KILLED])
    record.note_ends([KILLED])
    assert ends(record) == [("b1", -9)]


def test_a_cluster_stops_completely_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it stopped only in part, ZooKeeper would keep running, and cluster.json would stay."""
    said: list[str] = []
    cluster = RunningCluster(ClusterSettings(data_dir=tmp_path), said.append)
    cluster.record = started(tmp_path, said)
    node = Mock(id=1, exit_status=lambda: -9, is_running=bool)
    zookeeper = Mock(exits=dict, connect="")
    cluster.nodes[1], cluster.zookeeper = node, zookeeper
    monkeypatch.setattr(cluster.record, "dump", _no_dump)
    cluster.directory.cluster_json.touch()
    fill_the_disk(monkeypatch)
    asyncio.run(cluster.stop())
    zookeeper.stop.assert_called_once_with()
    assert not cluster.directory.cluster_json.exists()
    assert said == [f"{cluster.record.folder} is not sealed: No space left on device"]


def test_a_pause_ends_before_the_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the judge would find a fault that was not healed."""
    cluster = RunningCluster(ClusterSettings(data_dir=tmp_path, keep_evidence=False), print)
    cluster.record = started(tmp_path, [])
    node = Mock(id=1, exit_status=lambda: 0, is_running=lambda: True)
    cluster.nodes[1] = node

    async def pause_and_stop() -> None:
        cluster.record.fault_injected("pause", 1)
        cluster.thaw_later(node, 3600)
        await cluster.stop()

    asyncio.run(pause_and_stop())
    node.thaw.assert_called_once_with()
    (file,) = (cluster.record.folder / "harness=supervisor").iterdir()
    events = [json.loads(line) for line in file.read_text().splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds == ["started", "fault_injected", "fault_healed", "run_ending", "node_ended"]
    assert events[3]["running"] == 1


def test_the_end_of_a_pause_is_recorded_before_the_node_can_write(tmp_path: Path) -> None:
    """An event of the node before `fault_healed` would deny the pause."""
    cluster = RunningCluster(ClusterSettings(data_dir=tmp_path), lambda _sentence: None)
    cluster.record = started(tmp_path, [])
    order: list[str] = []
    node = Mock(id=1, thaw=lambda: order.append(f"thawed after {kinds()[-1]}"))

    def kinds() -> list[str]:
        (file,) = (cluster.record.folder / "harness=supervisor").iterdir()
        return [json.loads(line)["kind"] for line in file.read_text().splitlines()]

    async def pause_twice() -> None:
        cluster.thaw_later(node, 0)
        while not order:
            await asyncio.sleep(0)
        cluster.record.fault_injected("pause", 1)
        cluster.thaw_later(node, 3600)
        cluster.thaw_now()

    asyncio.run(pause_twice())
    assert order == ["thawed after fault_healed"] * 2


async def _no_dump(_connect: str, _name: str) -> None:
    """Dump nothing: there is no ZooKeeper."""
