"""The embedded ZooKeeper server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

from bridgehead.cluster import class_archive
from bridgehead.cluster.child_process import pid_is_ours, stop_stray
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import archive_file, class_path, find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper, server_mode, serves
from tests.integration.processes import wait_until


def client_of(server: EmbeddedZooKeeper) -> KazooClient:
    client = KazooClient(server.connect, timeout=4)
    client.start(timeout=60)
    return client


@pytest.mark.parametrize("members", [1, pytest.param(3, marks=pytest.mark.long)])
def test_second_start_finds_the_data(tmp_path: Path, members: int) -> None:
    """No process is left after either stop."""
    pids = []
    for attempt in range(2):
        ports = Ports()
        server = EmbeddedZooKeeper(
            tmp_path / "zk",
            [ports.choose() for _ in range(1 if members == 1 else 9)],
            java=find_java({}),
            heap_mib=128,
        )
        server.start()
        try:
            server.wait_until_serving()
            pids += [server.pid(member.id) for member in server.members]
            client = client_of(server)
            if attempt == 0:
                client.create("/kept", b"data")
            assert client.get("/kept")[0] == b"data"
            client.stop()
            client.close()
            modes = [server_mode("127.0.0.1", member.port) for member in server.members]
        finally:
            server.stop()
    assert sorted(map(str, modes)) == (
        ["standalone"] if members == 1 else ["follower", "follower", "leader"]
    )
    assert len(pids) == 2 * members
    assert not any(psutil.pid_exists(pid) for pid in pids if pid)


def test_a_server_that_is_silent_on_its_first_connection_is_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        listener.settimeout(10)

        def respond_on_the_second_connection() -> None:
            first, _ = listener.accept()
            with first, listener.accept()[0] as second:
                assert second.recv(4) == b"srvr"
                second.sendall(b"Mode: standalone\n")

        responded = pool.submit(respond_on_the_second_connection)
        assert serves("127.0.0.1", listener.getsockname()[1])
        responded.result()


def test_server_listens_on_loopback_and_logs_to_its_file(
    zookeeper_server: EmbeddedZooKeeper,
) -> None:
    process = psutil.Process(zookeeper_server.pid() or 0)
    listening = [c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
    assert (zookeeper_server.folder / "zookeeper.out").read_text() == ""
    assert "binding to port" in (zookeeper_server.folder / "zookeeper.log").read_text()


def test_requests_may_exceed_the_default_jute_maxbuffer(
    zookeeper_server: EmbeddedZooKeeper,
) -> None:
    client = client_of(zookeeper_server)
    try:
        client.create("/large", b"x" * 1_500_000)
        assert len(client.get("/large")[0]) == 1_500_000
    finally:
        client.stop()
        client.close()


def test_server_dies_with_a_killed_parent(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from bridgehead.cluster.zookeeper import EmbeddedZooKeeper\n"
        "from bridgehead.cluster.java import find_java\n"
        "from bridgehead.cluster.ports import Ports\n"
        "s = EmbeddedZooKeeper(Path(sys.argv[1]), [Ports().choose()], java=find_java())\n"
        "s.start(); print(s.pid(), flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        try:
            # Java may not have its command line yet.
            wait_until(lambda: pid_is_ours(pid, str(tmp_path)))
        finally:
            parent.kill()
    wait_until(lambda: not pid_is_ours(pid, str(tmp_path)))


def test_process_of_a_stale_pid_file_is_killed_only_if_it_is_ours(tmp_path: Path) -> None:
    """The pid in the file may meanwhile belong to another program."""
    pid_file = tmp_path / "zookeeper.pid"
    marker = str(tmp_path / "zoo.cfg")
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(sleeper) as stranger, subprocess.Popen([*sleeper, marker]) as ours:
        try:
            # A process that has just been started may not have its command line yet.
            wait_until(lambda: pid_is_ours(ours.pid, marker))
            pid_file.write_text(str(stranger.pid))
            assert stop_stray(pid_file, marker) is None
            assert stranger.poll() is None
            assert not pid_file.exists()
            pid_file.write_text(str(ours.pid))
            assert stop_stray(pid_file, marker) == ours.pid
            assert ours.wait(5) == -signal.SIGKILL
            assert not pid_is_ours(ours.pid, marker)
            pid_file.write_text("garbage")
            assert stop_stray(pid_file, marker) is None
        finally:
            stranger.kill()


def test_missing_jar_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"contains no zookeeper-3.*--zookeeper"):
        class_path(tmp_path)


def test_failed_server_start_names_the_log(tmp_path: Path) -> None:
    """The error is raised as soon as the Java process exits."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho broken; exit 3\n")
    java.chmod(0o755)
    server = EmbeddedZooKeeper(tmp_path / "zk", [Ports().choose()], java=java)
    server.start()
    with pytest.raises(ClusterError, match=r"exited: exit status 3.*zookeeper\.out"):
        server.wait_until_serving()
    server.stop()
    assert "broken" in (tmp_path / "zk" / "zookeeper.out").read_text()


def test_killed_ensemble_leaves_nothing(tmp_path: Path) -> None:
    """Neither a process nor a pid file is left. A second kill does nothing."""
    server = EmbeddedZooKeeper(tmp_path / "zk", [Ports().choose()], java=find_java({}))
    server.start()
    pid = server.pid()
    assert pid is not None
    server.kill()
    server.kill()
    assert not psutil.pid_exists(pid)
    assert not (tmp_path / "zk" / "zookeeper.pid").exists()


def _loaded_from(server: EmbeddedZooKeeper, log: Path) -> str:
    """Start and stop a server; return where Java says it got the server's main class."""
    with server:
        pass
    lines = log.read_text().splitlines()
    return next(line.split("source: ")[1] for line in lines if "quorum.QuorumPeerMain " in line)


def test_a_damaged_class_archive_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is one that is cut, or is no archive; an intact one is used."""
    java = find_java()
    made = archive_file(java, class_path())
    assert made is not None
    intact = made.read_bytes()
    archive, log = tmp_path / "classes.jsa", tmp_path / "loaded"
    monkeypatch.setenv("BRIDGEHEAD_ZOOKEEPER_ARCHIVE", str(archive))
    monkeypatch.setenv("BRIDGEHEAD_ZOOKEEPER_JVMFLAGS", f"-Xlog:class+load:file={log}")
    middle = len(intact) // 2
    flipped = bytes(255 - byte for byte in intact[middle : middle + 4096])
    sources = []
    for content in (
        intact,
        intact[:middle] + flipped + intact[middle + 4096 :],
        intact[:middle],
        b"no archive",
    ):
        archive.write_bytes(content)
        server = EmbeddedZooKeeper(tmp_path / "zk", [Ports().choose()], java=java, heap_mib=96)
        sources.append(_loaded_from(server, log))
        log.unlink()
        assert (tmp_path / "zk" / "zookeeper.out").read_text() == ""
    assert "shared objects file" in sources[0]
    assert all("zookeeper-3" in source for source in sources[1:]), sources


def test_a_java_that_writes_no_class_archive_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *-Xshare:dump*) exit 3;; esac\nexec {find_java()} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert class_archive.main() == 0
    assert "wrote no archive" in capsys.readouterr().err
    left = {file.suffix for file in (tmp_path / "cache" / "bridgehead").iterdir()}
    assert left == {".failed", ".lock"}


def test_full_heap_ends_the_server_and_names_the_setting(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path / "zk", [Ports().choose()], java=find_java(), heap_mib=24)
    with server:
        client = client_of(server)
        with contextlib.suppress(ConnectionLoss, SessionExpiredError, ConnectionClosedError):
            for number in range(40):
                client.create(f"/large-{number}", b"x" * 1_000_000)
        client.stop()
        client.close()
        wait_until(server.exits)
        (sentence,) = server.exits().values()
    assert sentence == (
        "ZooKeeper exited: its heap of 24 MiB is full; increase heap_mib of `zookeeper` in the "
        "cluster's file."
    )
