"""Images and compose files: lock files, package sources, environment variables and health."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bridgehead.cluster import zookeeper_alone
from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from deploy import kill_controller, offline, prerequisites, spark
from deploy.compose_plugin import main_mirrors

ROOT = Path(__file__).parents[3]
LOCK = """\
grpcio==1.85.1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
pyspark==4.3.0 \\
    --hash=sha256:cc
"""


def test_only_locally_built_wheels_get_a_new_digest_in_the_lock() -> None:
    assert offline.with_built_digests(LOCK, {"pyspark": "dd"}) == LOCK.replace(
        "sha256:cc", "sha256:dd"
    )


def test_package_missing_in_the_lock_is_an_error() -> None:
    with pytest.raises(offline.CannotBuildError, match="does not name spark"):
        offline.with_built_digests(LOCK, {"spark": "dd"})


def test_lock_is_split_without_loss() -> None:
    fetched, built = offline.without(LOCK, ("pyspark",)), offline.only(LOCK, ("pyspark",))
    assert fetched + built == LOCK
    assert "grpcio" in fetched
    assert "grpcio" not in built


@pytest.mark.parametrize("name", ["node", "tools"])
def test_real_locks_are_parsed_completely(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    read = offline.without(text, ()).replace("\n", "").replace(" ", "")
    assert read == "".join(
        line for line in text.splitlines() if line and not line.startswith("#")
    ).replace(" ", "")


ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib
deb http://security.example bookworm-security main
deb http://elsewhere.example/x nodistro main
"""
FIELDS = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://other.example
Suites: nodistro
Components: main
"""


@pytest.mark.parametrize("text", [ONE_LINE, FIELDS])
def test_debian_mirror_of_the_machine_is_found(text: str) -> None:
    """Both of apt's source formats are read."""
    assert main_mirrors(text)[0] == "http://mirror.example/debian"


def test_standalone_zookeeper_has_the_defaults_of_the_official_image() -> None:
    text = zookeeper_alone.server_configuration({})
    assert "clientPort=2181" in text.splitlines()
    assert "dataLogDir=/datalog" in text.splitlines()


def test_ensemble_member_lists_all_servers() -> None:
    text = zookeeper_alone.server_configuration(
        {"ZOO_SERVERS": "server.1=a:2888:3888;2181 server.2=b:2888:3888;2181"}
    )
    assert "server.2=b:2888:3888;2181" in text.splitlines()
    assert "clientPort" not in text


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ZOO_TICKTIME": "5"}, "ZOO_TICKTIME is not supported"),
        ({"ZOO_SERVERS": "a:2888"}, "write server.ID=host"),
    ],
)
def test_unsupported_variable_is_rejected(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        zookeeper_alone.server_configuration(environment)


@pytest.mark.parametrize("text", ["0", "x", "256"])
def test_invalid_member_number_is_rejected(text: str) -> None:
    with pytest.raises(ClusterError, match="from 1 to 255"):
        zookeeper_alone.my_id({"ZOO_MY_ID": text})


def test_ports_are_published_on_loopback_only() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.ensemble.yml"])
def test_our_containers_are_unprivileged_read_only_and_limited(file: str) -> None:
    services = yaml.safe_load((ROOT / file).read_text())["services"]
    ours = {
        name: service
        for name, service in services.items()
        if "bridgehead" in service.get("image", "")
    }
    expected = {
        "docker-compose.yml": {
            *("zookeeper", "setup", "kafka-1", "kafka-2", "kafka-3", "submitter", "page"),
            *("spark-master", "spark-worker-1", "spark-worker-2"),
        },
        "docker-compose.ensemble.yml": {"zookeeper-2", "zookeeper-3"},
    }
    assert set(ours) == expected[file]
    for service in ours.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"]
        assert service["mem_limit"]


def responses(**outputs: tuple[int, str]) -> prerequisites.Run:
    """Return a fake `run`. The keys are the first two words of commands, joined with `_`."""

    def run(*command: str) -> tuple[int, str]:
        return outputs.get("_".join(command[:2]), (0, ""))

    return run


@pytest.mark.parametrize(
    ("run", "sentences"),
    [
        (
            responses(docker_version=(127, "")),
            ["Docker is missing: sudo apt-get install docker.io"],
        ),
        (
            responses(docker_version=(1, "Cannot connect")),
            ["No Docker engine answers: sudo systemctl start docker"],
        ),
        (
            responses(docker_version=(1, "permission denied while trying to connect")),
            ["The Docker engine denies access: sudo usermod -aG docker $USER, and log in again"],
        ),
        (
            responses(docker_compose=(1, "")),
            ["Docker Compose v2 is missing: python3 -m deploy.compose_plugin"],
        ),
        (
            {"debootstrap_--version": (127, "")},
            ["debootstrap is missing: sudo apt-get install debootstrap"],
        ),
        (
            {"debootstrap_--version": (127, ""), "docker_images": (0, "0123456789ab")},
            [],  # the base image exists
        ),
    ],
)
def test_missing_prerequisites_are_named_with_the_command_that_installs_them(
    run: prerequisites.Run | dict[str, tuple[int, str]],
    sentences: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    reported = prerequisites.missing(
        responses(**run) if isinstance(run, dict) else run, lambda _: 10**12
    )
    assert reported == sentences


def test_too_little_space_is_named_once_per_file_system() -> None:
    (sentence,) = prerequisites.missing_space(str(ROOT), lambda _: 3 * 10**9)
    assert "has 3.0 GB of free space, and the build needs" in sentence


def test_prerequisites_need_no_installed_package() -> None:
    """These modules run before anything is downloaded."""
    command = [sys.executable, "-S", "-c", "import deploy.prerequisites, deploy.compose_plugin"]
    subprocess.run(command, cwd=ROOT, check=True)


def test_machine_that_cannot_build_has_its_own_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def reject(*_command: object) -> str:
        raise offline.CannotBuildError("the mirror is out of reach.")

    monkeypatch.setattr(offline, "missing", list)
    monkeypatch.setattr(offline, "run", reject)
    assert offline.main() == prerequisites.CANNOT_BUILD
    assert "the mirror is out of reach" in capsys.readouterr().err


def test_spark_worker_offers_configured_resources() -> None:
    """Its work directory is in /tmp, because the container's file system is read-only."""
    arguments = spark.command(
        "worker", "w", {"SPARK_WORKER_CORES": "3", "SPARK_WORKER_MEMORY": "2g"}
    )
    text = " ".join(arguments)
    assert "--cores 3 --memory 2g" in text
    assert "--work-dir /tmp/" in text
    assert arguments[-1] == spark.MASTER


def test_unknown_spark_daemon_is_rejected() -> None:
    with pytest.raises(ClusterError, match="use master or worker"):
        spark.command("", "host", {})


def test_published_ports_are_outside_the_ephemeral_range_of_linux() -> None:
    """A port from 32768 on may be taken by an outgoing connection."""
    text = (ROOT / "docker-compose.yml").read_text()
    published = re.findall(r"127\.0\.0\.1:(?:\$\{\w+:-)?(\d+)\}?:\d+", text)
    assert len(published) >= 6
    assert max(map(int, published)) < 32768


def test_kill_controller_kills_the_service_that_health_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], *, check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(kill_controller, "_health", {9404: "", 7: "broker 3 is controller"}.get)
    monkeypatch.setenv("BRIDGEHEAD_METRICS_PORT_2", "7")
    assert kill_controller.main() == 0
    assert commands == [["docker", "compose", "kill", "kafka-3"]]


def test_kill_controller_kills_nothing_without_an_active_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(kill_controller, "_health", lambda _port: "no active controller is known")
    assert kill_controller.main() == ExitCode.CANNOT_RUN
