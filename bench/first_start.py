"""`bridgehead up --detach` and a pytest run's clusters, compared with starting ZooKeeper alone.

Why: everybody waits for the first cluster. The bare ZooKeeper is the same server with the same
Java, without a class archive and with log4j2. All sides run in turns. Java's memory is that of a
cluster which was just started, with its share of the pages that other processes use, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import psutil

from bench.report import Plan, median, progress, spread
from bench.startup import proportional_mb
from bridgehead.application import module_command, module_environment
from bridgehead.cluster.child_process import die_with_parent, start_child, stop_child
from bridgehead.cluster.java import archive_file, class_path, find_java
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.cluster.zookeeper import (
    MAIN_CLASS,
    EmbeddedZooKeeper,
    Member,
    server_configuration,
    serves,
)

_POLL_S: Final = 0.005
_LOG4J: Final = """\
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:bench.log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d{ISO8601}] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""
_TESTS: Final = """\
import time
import pytest

@pytest.mark.parametrize("brokers", [3, 2])
def test_cluster(brokers, request):
    began = time.monotonic()
    request.applymarker(pytest.mark.bridgehead(brokers=brokers))
    request.getfixturevalue("bridgehead_cluster")
    print("READY", time.monotonic() - began)
"""


@contextmanager
def _bare_zookeeper(folder: Path, port: int) -> Iterator[int]:
    """Start the server as its own scripts do, with our configuration; yield its pid."""
    folder.mkdir(parents=True)
    member = Member(1, folder, port)
    configuration, logging = folder / "zoo.cfg", folder / "log4j2.properties"
    configuration.write_text(server_configuration(member, [member]))
    logging.write_text(_LOG4J)
    jars = class_path()
    core = next(Path(jars.partition(":")[0]).parent.glob("log4j-core-*.jar"))
    flags = [
        *("-Xmx1024m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-Dlog4j2.configurationFile={logging}", f"-Dbench.log={folder / 'zookeeper.log'}"),
        *("-Dzookeeper.jmx.log4j.disable=true", "-cp", f"{jars}:{core}"),
    ]
    command = [str(find_java()), *flags, MAIN_CLASS, str(configuration)]
    process = start_child(die_with_parent(command), output=folder / "zookeeper.out")
    try:
        yield process.pid
    finally:
        stop_child(process)


@contextmanager
def _our_zookeeper(folder: Path, port: int) -> Iterator[int]:
    server = EmbeddedZooKeeper(folder, [port], java=find_java())
    server.start()
    try:
        pid = server.pid()
        assert pid is not None
        yield pid
    finally:
        server.stop()


def _server_start(
    start: Callable[[Path, int], AbstractContextManager[int]], folder: Path
) -> tuple[float, float]:
    """Return the seconds until the server serves, and its processor time until then."""
    with Ports() as ports:
        port = ports.choose()
        began = time.monotonic()
        with start(folder, port) as pid:
            while not serves(LOOPBACK, port):
                time.sleep(_POLL_S)
            elapsed, times = time.monotonic() - began, psutil.Process(pid).cpu_times()
            return elapsed, times.user + times.system


def _up(folder: Path) -> tuple[float, float]:
    """Run `bridgehead up --detach`; return its seconds, and Java's memory in MB."""

    def bridgehead(*arguments: str) -> str:
        return subprocess.run(
            [*module_command("bridgehead", *arguments), "--data-dir", str(folder)],
            env=module_environment(),
            capture_output=True,
            check=True,
            text=True,
        ).stdout

    began = time.monotonic()
    document = json.loads(bridgehead("up", "--detach", "--ports", "auto", "--json"))
    elapsed = time.monotonic() - began
    memory = proportional_mb(document["zookeeper"]["pid"])
    bridgehead("down")
    return elapsed, memory


def _pytest(folder: Path) -> tuple[float, float]:
    """Run two tests with clusters of their own; return the seconds until each had its cluster."""
    folder.mkdir()
    (folder / "test_clusters.py").write_text(_TESTS)
    output = subprocess.run(
        [sys.executable, "-m", "pytest", "-sq", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    first, second = (
        float(line.split("READY")[1]) for line in output.splitlines() if "READY" in line
    )
    return first, second


def run(plan: Plan) -> list[str]:
    """Measure all sides in turns."""
    archive = archive_file(find_java(), class_path())
    with_archive = "with" if archive is not None and archive.is_file() else "WITHOUT"
    bare, ours, up, tests = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="bridgehead-bench-") as name:
        for at in range(plan.rounds(9)):
            progress(f"first start: round {at + 1}")
            folder = Path(name) / str(at)
            bare.append(_server_start(_bare_zookeeper, folder / "bare"))
            ours.append(_server_start(_our_zookeeper, folder / "ours"))
            up.append(_up(folder / "up"))
            tests.append(_pytest(folder / "tests"))
    (bare_s, bare_cpu), (ours_s, ours_cpu), (up_s, java_mb), (first_s, second_s) = (
        list(zip(*side, strict=True)) for side in (bare, ours, up, tests)
    )
    return [
        f"bare ZooKeeper {spread(bare_s, 's', 2)}, processor time {spread(bare_cpu, 's', 2)}",
        f"ours, {with_archive} a class archive: {median(ours_s) / median(bare_s):.2f} of the time, "
        f"{median(ours_cpu) / median(bare_cpu):.2f} of the processor time "
        f"({spread(ours_s, 's', 2)})",
        f"`up --detach`: {median(up_s) / median(bare_s):.2f} x the bare start "
        f"({spread(up_s, 's', 2)})",
        f"first cluster of a pytest run / `up`: {median(first_s) / median(up_s):.2f} "
        f"({spread(first_s, 's', 2)}); second {spread(second_s, 's', 2)}",
        f"memory of Java {spread(java_mb, 'MB')}",
    ]
