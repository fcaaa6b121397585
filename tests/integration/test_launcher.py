"""From the second cluster on, a program forks the supervisors from one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bridgehead.application import module_environment
from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.launcher import LaunchedSupervisor
from tests.integration.processes import is_running, processes_of, wait_until

StartCluster = Callable[..., Cluster]
PROGRAM = """
import os, sys
from bridgehead.cluster import Cluster

folder, zookeeper = sys.argv[1:]
clusters = []
for number in (1, 2, 3):
    os.environ["CHANGED"] = str(number == 3)
    cluster = Cluster(brokers=1, data_dir=f"{folder}/{number}", zookeeper=f"{zookeeper}-{number}")
    supervisor = cluster.start()._supervisor
    print(type(supervisor).__name__, supervisor.pid, flush=True)
    clusters.append(cluster)
sys.stdin.read()
"""

POLICY = """
from bridgehead.policy import CreateTopicPolicy

class {}(CreateTopicPolicy):
    def validate(self, request):
        pass
"""


@pytest.fixture
def program(tmp_path: Path, new_chroot: Callable[[], str]) -> Iterator[subprocess.Popen[str]]:
    """A program that starts three clusters and keeps them."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), new_chroot()],
        env=module_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def start_launched(start_brokers: StartCluster) -> StartCluster:
    """Start a cluster of one broker whose supervisor is forked."""
    start_brokers(brokers=1).stop()

    def start(**options: object) -> Cluster:
        cluster = start_brokers(brokers=1, **options)
        assert isinstance(cluster._supervisor, LaunchedSupervisor)
        return cluster

    return start


def test_supervisors_are_forked_from_the_second_on_until_the_environment_changes(
    program: subprocess.Popen[str], tmp_path: Path
) -> None:
    """When the program is killed, all processes end."""
    assert program.stdout is not None
    kinds, pids = zip(*(program.stdout.readline().split() for _ in range(3)), strict=True)
    assert kinds == ("Popen", "LaunchedSupervisor", "Popen")
    supervisors = [psutil.Process(int(pid)) for pid in pids]
    program.kill()
    program.wait()
    wait_until(lambda: not any(map(is_running, supervisors)))
    assert processes_of(tmp_path) == []


def test_a_forked_supervisor_notices_the_end_of_a_node(
    start_launched: StartCluster, tmp_path: Path
) -> None:
    cluster = start_launched(data_dir=tmp_path / "c")
    log = tmp_path / "c" / "supervisor.log"
    os.kill(cluster.brokers[1].pid, signal.SIGKILL)
    wait_until(lambda: "Broker 1 exited: killed by signal 9." in log.read_text())
    cluster.stop()
    assert processes_of(tmp_path) == []


def test_a_forked_supervisor_works_in_the_directory_of_its_program(
    start_launched: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = start_launched()
    supervisor = psutil.Process(cluster._supervisor.pid)  # type: ignore[union-attr]
    assert supervisor.cwd() == str(tmp_path)
    assert " ".join(supervisor.cmdline()).rstrip().endswith("-m bridgehead.cluster")


def test_a_forked_supervisor_has_the_python_path_of_its_program(
    start_launched: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes find a policy in a folder that the launcher did not know."""
    for name in ("First", "Second"):
        module = tmp_path / name / "my_policies.py"
        module.parent.mkdir()
        module.write_text(POLICY.format(name))
        monkeypatch.setenv("PYTHONPATH", str(module.parent))
        start_launched(properties={"create.topic.policy.class.name": f"my_policies.{name}"})


def test_the_error_of_a_forked_supervisor_is_reported(
    start_launched: StartCluster, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match=r"Broker 1 did not start: .*authorizer\.class\.name"):
        start_launched(data_dir=tmp_path / "c", properties={"authorizer.class.name": "nowhere"})
    assert processes_of(tmp_path) == []


def test_clusters_start_without_a_launcher_that_was_killed(
    start_launched: StartCluster, start_brokers: StartCluster
) -> None:
    """The next cluster starts as the first one did."""
    launcher = psutil.Process(start_launched()._supervisor.pid).parent()  # type: ignore[union-attr]
    assert launcher is not None
    launcher.kill()
    launcher.wait()
    cluster = start_brokers(brokers=1)
    assert isinstance(cluster._supervisor, subprocess.Popen)
    assert cluster.controller_id() == 1
