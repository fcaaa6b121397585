"""The real supervisor starts, controls and stops nodes, most of them fake; it leaves no process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bridgehead.application import module_command, module_environment
from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.data_directory import read_json
from bridgehead.cluster.ports import Ports
from bridgehead.exit_codes import ExitCode
from tests.integration.processes import processes_of, wait_until

ROOT = Path(__file__).parents[2]
FORKED: dict[str, Any] = {"node_command": ()}
"""The setting with which the supervisor forks real nodes."""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `bridgehead ...` and wait for its end."""
    return subprocess.run(
        module_command("bridgehead.cli.main", *arguments),
        env=module_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def fake_up(
    tmp_path: Path, fake_node_command: tuple[str, ...]
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a supervisor with fake nodes; it prints one line when it is ready or has failed."""
    started: list[subprocess.Popen[str]] = []

    def start(**settings: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            module_command("bridgehead.cluster"),
            env=module_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        request = {
            "settings": {
                "data_dir": str(tmp_path / "c"),
                "ports_auto": True,
                "node_command": fake_node_command,
                **settings,
            },
            "detached": False,
        }
        assert process.stdin is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def test_cluster_can_be_started_commanded_and_stopped(
    tmp_path: Path, start_cluster: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    folder = tmp_path / "c"
    cluster = start_cluster(data_dir=folder, node_command=fake_node_command)
    document = read_json(folder / "cluster.json")
    assert document is not None
    assert document["cluster_id"] == "fake-cluster"
    assert document["controller_id"] == cluster.controller_id()
    assert [broker["id"] for broker in document["brokers"]] == [1, 2, 3]
    assert document["bootstrap_servers"] == cluster.bootstrap_servers
    assert document["zookeeper"]["data_dir"] == str(folder / "zookeeper")
    assert (folder / "control.sock").stat().st_mode & 0o777 == 0o600

    victim = cluster.kill_controller()
    successor = cluster.wait_for_controller(other_than=victim)
    assert successor != victim
    assert cluster.brokers[victim].pid == 0
    assert cluster.status()["brokers"][victim - 1]["condition"] == "killed"
    with pytest.raises(ClusterError, match=f"Broker {victim} is not running"):
        cluster.stop_node(victim)
    cluster.start_node(victim)
    with pytest.raises(ClusterError, match=f"Broker {victim} is running already"):
        cluster.start_node(victim)
    cluster.move_controller(victim)
    assert cluster.controller_id() == victim
    assert cluster.expire_controller() == victim
    cluster.wait_for_controller()
    cluster.stop_node(successor)
    assert cluster.status()["brokers"][successor - 1]["condition"] == "stopped"
    with pytest.raises(ClusterError, match="There is no broker 9"):
        cluster.kill_node(9)

    cluster.stop()
    assert not (folder / "cluster.json").exists()
    assert not (folder / "control.sock").exists()
    assert processes_of(folder) == []


def test_a_cluster_stops_when_the_process_it_is_bound_to_exits(
    tmp_path: Path, fake_up: Callable[..., subprocess.Popen[str]]
) -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        process = fake_up(brokers=1, stop_with_pid=sleeper.pid)
        assert "ready" in first_line(process)
        assert process.poll() is None
        sleeper.kill()
    assert process.wait(30) == 0
    assert processes_of(tmp_path / "c") == []
    log = (tmp_path / "c" / "supervisor.log").read_text()
    assert f"The cluster stops: process {sleeper.pid} has exited." in log


def test_a_cluster_cannot_be_bound_to_a_process_that_does_not_exist(
    fake_up: Callable[..., subprocess.Popen[str]],
) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    line = first_line(fake_up(brokers=1, stop_with_pid=ended.pid))
    assert line == {"error": f"--stop-with-pid: there is no process {ended.pid}."}


def test_a_cluster_stops_when_its_time_is_over(
    tmp_path: Path, fake_up: Callable[..., subprocess.Popen[str]]
) -> None:
    process = fake_up(brokers=1, ttl_s=6.0)
    assert "ready" in first_line(process)
    assert process.wait(40) == 0
    log = (tmp_path / "c" / "supervisor.log").read_text()
    assert "The cluster stops: its time of 6 s is over." in log


def test_paused_controller_resumes(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    """The supervisor sends SIGSTOP and later SIGCONT. Status does not wait for a frozen node."""
    cluster = start_brokers(data_dir=tmp_path / "c", brokers=2, node_command=fake_node_command)
    pids = {broker.id: broker.pid for broker in cluster.brokers.values()}
    frozen = cluster.freeze_controller(1.0)
    process = psutil.Process(pids[frozen])
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
    assert cluster.status()["brokers"][frozen - 1]["condition"] == "frozen"
    assert cluster.status()["brokers"][frozen - 1]["state"] is None
    wait_until(lambda: process.status() != psutil.STATUS_STOPPED)
    wait_until(lambda: cluster.status()["brokers"][frozen - 1]["condition"] == "running")


def test_the_pause_of_a_killed_broker_has_ended(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    """The kill also cancels the freeze's timer, which could otherwise end a later freeze."""
    folder = tmp_path / "c"
    cluster = start_brokers(data_dir=folder, brokers=2, node_command=fake_node_command)
    frozen = cluster.freeze_controller(60)
    cluster.kill_node(frozen)
    (lines,) = folder.glob("evidence/run=*/harness=*/*.jsonl")
    kinds = [json.loads(line)["kind"] for line in lines.read_text().splitlines()]
    assert kinds[-3:] == ["fault_injected", "fault_healed", "fault_injected"]


def test_heal_moves_the_controller_back_although_a_broker_is_down(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    cluster = start_brokers(data_dir=tmp_path / "c", controller=1, node_command=fake_node_command)
    cluster.move_controller(2)
    cluster.kill_node(3)
    cluster.heal()
    assert cluster.controller_id() == 1
    cluster.move_controller(2)
    cluster.kill_controller()
    cluster.heal()
    assert cluster.controller_id() == 1


def test_cluster_with_a_paused_node_stops(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    """A frozen process handles SIGTERM only after SIGCONT."""
    cluster = start_brokers(data_dir=tmp_path / "c", brokers=1, node_command=fake_node_command)
    cluster.freeze_controller(60)
    cluster.stop()
    assert processes_of(tmp_path / "c") == []


def test_supervisor_survives_and_logs_the_death_of_a_node(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    cluster = start_brokers(data_dir=tmp_path / "c", brokers=2, node_command=fake_node_command)
    os.kill(cluster.brokers[2].pid, signal.SIGKILL)
    wait_until(lambda: cluster.status()["brokers"][1]["condition"] == "ended")
    log = tmp_path / "c" / "supervisor.log"
    assert "Broker 2 exited: killed by signal 9." in log.read_text()
    assert cluster.brokers[2].pid == 0


def test_error_of_a_node_that_cannot_start_is_reported(
    tmp_path: Path, fake_node_command: tuple[str, ...], new_chroot: Callable[[], str]
) -> None:
    """The nodes that were started earlier are stopped."""
    cluster = Cluster(
        data_dir=tmp_path / "c",
        zookeeper=new_chroot(),
        node_command=fake_node_command,
        node_properties={2: {"fake.refuse": "The key file is missing."}},
    )
    with pytest.raises(ClusterError, match=r"Broker 2 did not start: The key file is missing\."):
        cluster.start()
    assert processes_of(tmp_path / "c") == []


@pytest.mark.parametrize(
    ("stage", "node"),
    [("zookeeper", {}), ("nodes", {}), ("zookeeper", FORKED), ("nodes", FORKED)],
    ids=["zookeeper", "nodes", "zookeeper-forked", "nodes-forked"],
)
def test_interrupted_start_leaves_no_process(
    tmp_path: Path,
    fake_up: Callable[..., subprocess.Popen[str]],
    stage: str,
    node: dict[str, Any],
) -> None:
    """Ctrl-C is pressed when ZooKeeper has just started, or when nodes run but are not ready."""
    process = fake_up(properties={"fake.never.ready": "true"}, **node)
    folder = tmp_path / "c"
    wanted = folder / ("zookeeper/zookeeper.pid" if stage == "zookeeper" else "nodes/3/node.pid")
    wait_until(wanted.exists)
    wait_until(lambda: processes_of(folder))  # a process has no command line while it execs
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert processes_of(folder) == []
    assert not (folder / "cluster.json").exists()


@pytest.mark.parametrize("node", [{}, FORKED], ids=["fake", "forked"])
def test_killed_supervisor_leaves_no_process(
    tmp_path: Path, fake_up: Callable[..., subprocess.Popen[str]], node: dict[str, Any]
) -> None:
    """Nodes and the fork server stop when their standard input ends. The kernel kills ZooKeeper."""
    process = fake_up(**node)
    assert "ready" in first_line(process)
    process.kill()
    process.wait()
    wait_until(lambda: processes_of(tmp_path / "c") == [])


@pytest.mark.parametrize("node", [{}, FORKED], ids=["fake", "forked"])
def test_next_supervisor_cleans_up_after_a_killed_one(
    tmp_path: Path, fake_up: Callable[..., subprocess.Popen[str]], node: dict[str, Any]
) -> None:
    """The next supervisor kills a frozen node, which cannot read the end of its standard input."""
    process = fake_up(brokers=1, **node)
    document = first_line(process)["ready"]
    stray = document["brokers"][0]["pid"]
    os.kill(stray, signal.SIGSTOP)
    process.kill()
    process.wait()
    assert not ControlClient(tmp_path / "c").directory.is_claimed()
    assert "ready" in first_line(fake_up(brokers=1))
    assert stray not in [left.pid for left in processes_of(tmp_path / "c")]
    assert f"Stopped a node (pid {stray})" in (tmp_path / "c" / "supervisor.log").read_text()


def test_cluster_stops_with_its_parent(
    tmp_path: Path, fake_up: Callable[..., subprocess.Popen[str]], new_chroot: Callable[[], str]
) -> None:
    process = fake_up(brokers=1, zookeeper_connect=new_chroot())
    assert "ready" in first_line(process)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    assert processes_of(tmp_path / "c") == []
    process.stdin = None


def test_second_bridgehead_up_in_the_same_folder_is_rejected(
    tmp_path: Path, start_brokers: Callable[..., Cluster], fake_node_command: tuple[str, ...]
) -> None:
    first = start_brokers(data_dir=tmp_path / "c", brokers=1, node_command=fake_node_command)
    result = command("up", "--data-dir", str(tmp_path / "c"), "--ports", "auto")
    pid = (tmp_path / "c" / "supervisor.pid").read_text().strip()
    assert result.returncode == ExitCode.CANNOT_RUN
    assert f"already running in {tmp_path / 'c'} as pid {pid}" in result.stderr
    assert "bridgehead down" in result.stderr
    assert first.controller_id() == 1


def test_port_in_use_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    port = Ports().choose()
    with socket.create_server(("127.0.0.1", port)):
        result = command("up", "--data-dir", str(tmp_path / "c"), "--base-port", str(port))
    assert result.returncode == ExitCode.CANNOT_RUN
    assert f"Port {port} is in use" in result.stderr
    assert "--ports auto" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "c" / "zookeeper" / "zookeeper.pid").exists()


@pytest.mark.parametrize("place", ["/proc/nowhere", "below a file"])
def test_unwritable_folder_is_an_error_of_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    folder = place if place.startswith("/") else str(tmp_path / "file" / "c")
    result = command("up", "--data-dir", folder, "--ports", "auto")
    assert result.returncode == ExitCode.CANNOT_RUN
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(f"bridgehead: {folder} cannot be written")
    assert "Traceback" not in result.stderr


def test_missing_java_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    result = subprocess.run(
        module_command("bridgehead.cli.main", "up", "--data-dir", str(tmp_path / "c")),
        env=module_environment({**os.environ, "JAVA_HOME": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == ExitCode.CANNOT_RUN
    assert "JAVA_HOME is" in result.stderr.splitlines()[-1]


def test_missing_external_zookeeper_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    address = f"127.0.0.1:{Ports().choose()}/chroot"
    result = command("up", "--data-dir", str(tmp_path / "c"), "--zookeeper", address)
    assert result.returncode == ExitCode.CANNOT_RUN
    assert f"No ZooKeeper answers at {address}" in result.stderr


def test_without_a_cluster_status_fails_and_down_succeeds(tmp_path: Path) -> None:
    """A stale pid file has no effect."""
    (tmp_path / "supervisor.pid").write_text("1\n")
    result = command("status", "--data-dir", str(tmp_path))
    assert result.returncode == ExitCode.CANNOT_RUN
    assert "No cluster is running" in result.stderr
    assert command("down", "--data-dir", str(tmp_path)).returncode == 0


def test_stack_trace_is_shown_only_with_debug(tmp_path: Path) -> None:
    assert "Traceback" not in command("status", "--data-dir", str(tmp_path)).stderr
    assert "Traceback" in command("--debug", "status", "--data-dir", str(tmp_path)).stderr


def test_ctrl_c_during_the_start_of_bridgehead_up_shows_no_stack_trace(tmp_path: Path) -> None:
    """The same holds while `bridgehead up` still imports its modules."""
    program = (
        "import sys; sys.argv = ['bridgehead', *sys.argv[1:]]\n"
        "from bridgehead.cli import main\n"
        "print('imported', flush=True); main.main()"
    )
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        process = subprocess.Popen(
            [sys.executable, "-c", program, "up", "--ports=auto", f"--data-dir={tmp_path}/c"],
            env=module_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "imported\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors
        assert process.returncode in (-signal.SIGINT, 130, 0)
    assert processes_of(tmp_path) == []
