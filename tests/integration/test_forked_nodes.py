"""Each forked node is a process of its own, like a node that runs in a new interpreter."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from tests.integration.processes import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")


def supervisor_of(folder: Path) -> psutil.Process:
    return psutil.Process(int((folder / "supervisor.pid").read_text()))


def command_line(folder: Path, broker_id: int) -> list[str]:
    node_folder = folder / "nodes" / str(broker_id)
    files = (
        "--config",
        node_folder / "node.properties",
        "--data-dir",
        node_folder,
        "--log-file",
        node_folder / "node.log",
    )
    return module_command("node", *map(str, files))


def open_files(pid: int) -> dict[int, str]:
    folder = Path(f"/proc/{pid}/fd")
    return {int(path.name): os.readlink(path) for path in folder.iterdir()}


def test_forked_nodes_share_nothing_that_a_user_can_see(
    tmp_path: Path, start_cluster: Callable[..., Cluster]
) -> None:
    cluster = start_cluster(brokers=2, data_dir=tmp_path / "c")
    pids = {broker.id: broker.pid for broker in cluster.brokers.values()}
    inputs = {os.readlink(f"/proc/{pid}/fd/0") for pid in pids.values()}
    assert len(inputs) == 2
    for broker_id, pid in pids.items():
        assert psutil.Process(pid).cmdline() == command_line(tmp_path / "c", broker_id)
        assert psutil.Process(pid).parent() == supervisor_of(tmp_path / "c")
        assert os.getsid(pid) == pid
        files = open_files(pid)
        output = str(tmp_path / "c" / "nodes" / str(broker_id) / "node.out")
        assert (files[1], files[2]) == (output, output)
        assert [files[0]] == [file for file in files.values() if file in inputs]
        assert str(tmp_path / "c" / "nodes" / str(3 - broker_id)) not in " ".join(files.values())


def test_a_forked_node_that_restarts_runs_in_a_new_interpreter(
    tmp_path: Path, start_cluster: Callable[..., Cluster]
) -> None:
    """The fork server ends after the start. The supervisor still learns how a forked node ended."""
    cluster = start_cluster(brokers=2, data_dir=tmp_path / "c")
    nodes = {broker.pid for broker in cluster.brokers.values()}
    children = supervisor_of(tmp_path / "c").children()
    assert sorted(child.pid for child in children if child.name() != "java") == sorted(nodes)
    cluster.stop_node(2)
    cluster.start_node(2)
    assert psutil.Process(cluster.brokers[2].pid).cmdline() == command_line(tmp_path / "c", 2)
    os.kill(cluster.brokers[1].pid, signal.SIGKILL)
    log = tmp_path / "c" / "supervisor.log"
    wait_until(lambda: "Broker 1 exited: killed by signal 9." in log.read_text())
    assert not nodes & {child.pid for child in supervisor_of(tmp_path / "c").children()}
