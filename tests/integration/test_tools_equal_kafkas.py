"""Our commands print the recorded output of Kafka 3.9.1's tools for the same state."""

from __future__ import annotations

import functools
import json
import re
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bridgehead.application import module_command, module_environment
from bridgehead.cli.commands import build_app
from bridgehead.cli.tools import TOOLS, connection
from bridgehead.cluster import Cluster
from bridgehead.exit_codes import ExitCode
from bridgehead.schema_version import SCHEMA_VERSION
from tests.fidelity.compare_tools import differences
from tests.fidelity.record_tools import LOGIN, MAIN_CLASSES, PROPERTIES
from tests.fidelity.tool_differences import TOOL_DIFFERENCES, as_ours
from tests.fidelity.tool_recordings import load_session

RECORDINGS = Path(__file__).parent.parent / "recordings" / "tools"
TOOLS_PAGE = Path(__file__).parent.parent.parent / "docs" / "tools.md"
OURS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    # With this property, every broker shows the change of a command when the command ends.
    "bridgehead.metadata.blocking": "cluster",
    "topic.management.policy.class.name": "bridgehead.policy.limits.TopicLimits",
    "bridgehead.policy.limits.partitions.max": "12",
}
# Command lines that change nothing: at least one of each tool that has such commands.
READS = (
    *("topics --describe", "configs --describe --broker 1", "acls --list"),
    "delegation-tokens --describe --command-config LOGIN",
    *("reassign-partitions --list", "groups --list", "cluster cluster-id", "log-dirs --describe"),
    *("features describe", "broker-api-versions", "cluster unregister --id 1"),
)


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    """A cluster with the properties of the recorded cluster."""
    racks = {broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)}
    with Cluster(
        zookeeper=new_chroot(),
        data_dir=tmp_path_factory.mktemp("tools") / "c",
        properties={**PROPERTIES, **OURS},
        node_properties=racks,
    ) as cluster:
        yield cluster


@pytest.mark.parametrize("name", MAIN_CLASSES)
def test_each_command_prints_the_same_as_kafkas_tool(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    """Standard output, standard error and the exit status are the same."""
    sasl = ",".join(cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3))
    different = differences(name, cluster.bootstrap_servers, sasl, tmp_path)
    assert not different, "\n".join(different)


def test_every_tool_is_recorded() -> None:
    """Every command has a recorded session with outputs, and every session has a command."""
    assert [tool.name for tool in TOOLS] == list(MAIN_CLASSES)
    sessions = {path.stem: load_session(path) for path in RECORDINGS.glob("*.txt")}
    assert set(sessions) == set(MAIN_CLASSES)
    assert all(any(step.output.lines() for step in steps) for steps in sessions.values())


def test_every_difference_of_a_tool_is_documented_and_needed() -> None:
    """docs/tools.md names each difference, and a recording shows each."""
    text = TOOLS_PAGE.read_text(encoding="utf-8")
    names = {row.name for row in TOOL_DIFFERENCES}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
    used: set[str] = set()
    for path in RECORDINGS.glob("*.txt"):
        for step in load_session(path):
            used |= as_ours(step.output)[1]
    assert used == names


def ours(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a `bridgehead` command in its own process, on this cluster."""
    return subprocess.run(
        module_command("bridgehead", *words),
        env={**module_environment(), "BRIDGEHEAD_DATA_DIR": str(cluster.data_dir)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_examples_of_the_page_work(cluster: Cluster) -> None:
    """The examples run in order. The last one shows what the others have done."""
    [block] = re.findall(r"```sh\n(bridgehead topics.*?)```", TOOLS_PAGE.read_text(), re.DOTALL)
    lines = block.splitlines()
    done = [ours(cluster, *shlex.split(line)[1:]) for line in lines]
    assert [(process.returncode, process.stderr) for process in done] == [(0, "")] * len(lines)
    [topic] = json.loads(done[-1].stdout)["topics"]
    assert (len(topic["partitions"]), topic["configs"]) == (3, {"retention.ms": "60000"})
    assert ours(cluster, "topics", "--delete", "--topic", "orders").returncode == ExitCode.OK


def test_reason_of_a_policy_is_printed(cluster: Cluster) -> None:
    create = ("topics", "--create", "--topic", "wide", "--partitions", "13")
    done = ours(cluster, *create)
    reason = "Topic 'wide' would have 13 partitions; the limit is 12."
    assert done.stdout == f"Error while executing topic command : {reason}\n"
    assert done.returncode == ExitCode.FAILED
    document = json.loads(ours(cluster, *create, "--json").stdout)
    assert document["error"] == reason


@pytest.mark.parametrize("line", READS)
def test_tool_prints_a_json_document(line: str, cluster: Cluster, tmp_path: Path) -> None:
    """The output is one document with a schema version and no error."""
    login = tmp_path / "login.properties"
    sasl = cluster.bootstrap_server(1, "SASL_PLAINTEXT")
    login.write_text(f"{LOGIN}bootstrap.servers={sasl}\n")
    words = [str(login) if word == "LOGIN" else word for word in line.split()]
    folder = ["--data-dir", str(cluster.data_dir)]
    done = CliRunner().invoke(build_app(), [*words, "--json", *folder], prog_name="bridgehead")
    document = json.loads(done.stdout)
    assert (document["schema_version"], document["error"]) == (SCHEMA_VERSION, None)
    assert len(document) > 2
    assert (done.exit_code, done.stderr) == (ExitCode.OK, "")


def test_command_that_waits_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message is on standard error. Without a response the command fails with one line."""
    monkeypatch.setattr(connection, "PROGRESS_S", 0.05)
    short = tmp_path / "short.properties"
    short.write_text("default.api.timeout.ms=600\nrequest.timeout.ms=500\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        words = ["topics", "--list", "--bootstrap-server", address]
        done = CliRunner().invoke(build_app(), [*words, "--command-config", str(short)])
    assert f"Waiting for {address} for " in done.stderr
    assert done.stdout.startswith("Error while executing topic command : ")
    assert (done.stdout.count("\n"), done.exit_code) == (1, ExitCode.FAILED)


@pytest.mark.parametrize(
    ("response", "removed"),
    [("y\n", True), ("Y\n", True), ("n\n", False), ("yes\n", False), ("\n", False), ("", False)],
)
def test_acls_are_removed_only_after_the_input_y(
    cluster: Cluster, response: str, removed: bool
) -> None:
    """kafka-acls.sh asks the same question. The end of the input counts as no, not as an error."""
    folder = ["--data-dir", str(cluster.data_dir)]
    acl = ["--topic", "asked", "--allow-principal", "User:alice", "--operation", "READ", *folder]
    run = functools.partial(CliRunner().invoke, build_app(), prog_name="bridgehead")
    assert run(["acls", "--add", *acl]).exit_code == ExitCode.OK
    done = run(["acls", "--remove", *acl], input=response)
    assert (done.exit_code, done.stdout) == (ExitCode.OK, "")
    assert done.stderr == (
        "Are you sure you want to remove ACLs: \n"
        " \t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW) \n"
        " from resource filter `ResourcePatternFilter(resourceType=TOPIC, name=asked, "
        "patternType=LITERAL)`? (y/n)\n"
    )
    listed = run(["acls", "--list", "--topic", "asked", *folder]).stdout
    assert ("User:alice" in listed) is not removed
