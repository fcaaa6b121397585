"""The `bridgehead` command: exit codes, schema versions of its JSON, and a closed output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bridgehead import __version__
from bridgehead.application import module_command, module_environment
from bridgehead.cluster import Cluster
from bridgehead.exit_codes import ExitCode
from bridgehead.schema_version import SCHEMA_VERSION
from tests.golden_histories import expand, load
from tests.integration.test_supervision import command


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed run with a violation."""
    return expand(load("acknowledged_write_missing"), tmp_path_factory.mktemp("run") / "run=golden")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of one fake broker."""
    node = (sys.executable, str(Path(__file__).with_name("fake_node.py")))
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(brokers=1, data_dir=folder, node_command=node) as cluster:
        (folder / "nodes" / "1" / "node.log").write_text("a line\n")
        yield cluster


@pytest.fixture
def folder(cluster: Cluster) -> Path:
    return cluster.data_dir


def test_the_module_prints_the_version_like_the_command() -> None:
    for arguments in (("--version",), ("version",)):
        done = subprocess.run(
            module_command("bridgehead", *arguments),
            env=module_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"bridgehead {__version__}\n"


def test_completion_can_be_shown_and_installed(tmp_path: Path) -> None:
    """The commands run in bash, because they detect the current shell."""
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run(
            ["bash", "-c", '"$@"; exit $?', "bash", *module_command("bridgehead", option)],
            env={**module_environment(), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("bridgehead" in text for text in written)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("version",), ExitCode.OK),
        (("judge", "RUN"), ExitCode.FAILED),
        (("up", "--unknown"), ExitCode.USAGE),
        (("judge",), ExitCode.USAGE),
        (("controller", "freeze", "--for", "soon"), ExitCode.USAGE),
        (("node", "run"), ExitCode.USAGE),
        (("judge", "EMPTY"), ExitCode.UNDECIDED),
        (("status", "--data-dir", "EMPTY"), ExitCode.CANNOT_RUN),
        (("judge", "EMPTY/missing"), ExitCode.CANNOT_RUN),
        (("node", "run", "--config", "EMPTY/missing"), ExitCode.CANNOT_RUN),
        (("evidence", "seal", "EMPTY"), ExitCode.CANNOT_RUN),
    ],
)
def test_each_kind_of_failure_has_its_own_exit_code(
    arguments: tuple[str, ...], expected: ExitCode, run_folder: Path, tmp_path: Path
) -> None:
    places = {"RUN": str(run_folder), "EMPTY": str(tmp_path)}
    for name, place in places.items():
        arguments = tuple(argument.replace(name, place) for argument in arguments)
    done = command(*arguments)
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_controller_show_without_a_controller_is_not_a_success(cluster: Cluster) -> None:
    show = ("controller", "show", "--data-dir", str(cluster.data_dir))
    assert command(*show).returncode == ExitCode.OK
    cluster.stop_node(1)
    try:
        shown, document = command(*show), command(*show, "--json")
    finally:
        cluster.start_node(1)
    assert (shown.returncode, document.returncode) == (ExitCode.UNDECIDED, ExitCode.UNDECIDED)
    assert shown.stdout == "There is no active controller.\n"
    assert json.loads(document.stdout)["controller_id"] is None


def test_status_without_a_controller_says_so_and_keeps_the_addresses(cluster: Cluster) -> None:
    status = ("status", "--data-dir", str(cluster.data_dir))
    address = cluster.bootstrap_servers
    running = command(*status).stdout
    epoch = cluster.status()["controller_epoch"]
    assert f"controller  broker 1, epoch {epoch}\n" in running
    assert "phase       ready\n" in running
    cluster.kill_node(1)
    try:
        killed = command(*status).stdout
        assert cluster.brokers[1].listeners == {"PLAINTEXT": address}
    finally:
        cluster.start_node(1)
    assert "phase       no controller\n" in killed
    assert "controller  none\n" in killed
    assert f"killed     -    -     PLAINTEXT://{address}" in killed
    faults = cluster.status()["faults"]
    assert (faults[-1]["action"], faults[-1]["target"]) == ("kill", "1")


def test_status_can_be_watched(cluster: Cluster) -> None:
    watch = module_command("bridgehead", "status", "--watch", "--data-dir", str(cluster.data_dir))
    with subprocess.Popen(
        watch, env=module_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen = list(_lines_until(process.stdout, "phase", 3))
        process.terminate()
    assert sum(line.startswith("controller  broker 1") for line in seen) == 2


def _lines_until(lines: Iterable[str], start: str, count: int) -> Iterator[str]:
    """Yield lines until `count` of them began with `start`."""
    for line in lines:
        yield line
        count -= line.startswith(start)
        if not count:
            return


def test_documents_have_a_schema_version(folder: Path, run_folder: Path) -> None:
    texts = [
        command("status", "--json", "--data-dir", str(folder)).stdout,
        command("controller", "show", "--json", "--data-dir", str(folder)).stdout,
        command("judge", "--json", str(run_folder)).stdout,
        (folder / "cluster.json").read_text(),  # `up --json` prints it
    ]
    assert [json.loads(text)["schema_version"] for text in texts] == [SCHEMA_VERSION] * len(texts)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("status", "--data-dir", "CLUSTER"),
        ("controller", "show", "--json", "--data-dir", "CLUSTER"),
        ("logs", "--data-dir", "CLUSTER"),
        ("judge", "RUN"),
        ("judge", "RUN", "--json"),
    ],
    ids=" ".join,
)
def test_command_ends_without_an_error_when_its_output_is_closed(
    arguments: tuple[str, ...], folder: Path, run_folder: Path
) -> None:
    places = {"CLUSTER": str(folder), "RUN": str(run_folder)}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            module_command(
                "bridgehead", *(places.get(argument, argument) for argument in arguments)
            ),
            env=module_environment(),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (ExitCode.OUTPUT_CLOSED, "")


def test_up_stops_the_cluster_when_its_output_is_closed(tmp_path: Path) -> None:
    """The command does not mistake the closed output for an unusable data directory."""
    reading, writing = os.pipe()
    os.close(reading)
    up = ("up", "--brokers=1", "--ports=auto", f"--data-dir={tmp_path / 'c'}")
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            module_command("bridgehead", *up),
            env=module_environment(),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == ExitCode.OUTPUT_CLOSED
    assert "Traceback" not in done.stderr
    assert "cannot be used" not in done.stderr
    assert not (tmp_path / "c" / "cluster.json").exists()
