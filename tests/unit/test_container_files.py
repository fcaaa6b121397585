"""What images are made from and told: locks, sources of packages, variables, health."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bridgehead.cluster import zookeeper_alone
from bridgehead.cluster.errors import ClusterError
from containers import offline, spark
from containers.compose_plugin import main_mirrors

ROOT = Path(__file__).parent.parent.parent
LOCK = """\
grpcio==1.85.1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
pyspark==4.3.0 \\
    --hash=sha256:cc
"""


def test_only_the_wheel_that_was_made_here_gets_another_digest() -> None:
    """Every other package is still held to the digest that was reviewed."""
    assert offline.locked_again(LOCK, {"pyspark": "dd"}) == LOCK.replace("sha256:cc", "sha256:dd")


def test_a_package_that_the_lock_does_not_name_is_an_error() -> None:
    """A digest that went nowhere would let any wheel in."""
    with pytest.raises(offline.CannotBuildError, match="does not name spark"):
        offline.locked_again(LOCK, {"spark": "dd"})


def test_the_lock_is_cut_in_two_without_loss() -> None:
    """What is fetched as a wheel, and what has to be made into one."""
    fetched, made = offline.without(LOCK, ("pyspark",)), offline.only(LOCK, ("pyspark",))
    assert fetched + made == LOCK
    assert "grpcio" in fetched
    assert "grpcio" not in made


@pytest.mark.parametrize("name", ["node", "tools"])
def test_the_real_locks_are_read_whole(name: str) -> None:
    """No entry is in a form that the cut does not know."""
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
def test_the_mirror_is_the_machines_own(text: str) -> None:
    """In both of apt's forms; other repositories have no next Debian release."""
    assert main_mirrors(text)[0] == "http://mirror.example/debian"


def test_a_server_alone_listens_where_clients_expect_it() -> None:
    """The official image's defaults."""
    text = zookeeper_alone.server_configuration({})
    assert "clientPort=2181" in text.splitlines()
    assert "dataLogDir=/datalog" in text.splitlines()


def test_a_member_of_an_ensemble_is_told_of_all() -> None:
    """Client ports stand in the servers' own lines."""
    text = zookeeper_alone.server_configuration(
        {"ZOO_SERVERS": "server.1=a:2888:3888;2181 server.2=b:2888:3888;2181"}
    )
    assert "server.2=b:2888:3888;2181" in text.splitlines()
    assert "clientPort" not in text


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"ZOO_TICKTIME": "5"}, "ZOO_TICKTIME is not understood"),
        ({"ZOO_SERVERS": "a:2888"}, "write server.ID=host"),
    ],
)
def test_a_variable_that_is_not_understood_is_refused(
    environment: dict[str, str], says: str
) -> None:
    """A server that ignores a setting runs with another one than was asked for."""
    with pytest.raises(ClusterError, match=says):
        zookeeper_alone.server_configuration(environment)


@pytest.mark.parametrize("text", ["0", "x", "256"])
def test_a_member_without_a_number_is_refused(text: str) -> None:
    """Two members of one number lose each other's votes."""
    with pytest.raises(ClusterError, match="from 1 to 255"):
        zookeeper_alone.my_id({"ZOO_MY_ID": text})


def test_published_ports_are_the_hosts_loopback() -> None:
    """Nothing of a cluster without passwords may be reached from another machine."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_containers_have_no_rights_and_no_writable_root() -> None:
    """Of every service that is a node."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    nodes = [service for name, service in services.items() if name.startswith("kafka-")]
    assert len(nodes) == 3
    for node in nodes:
        assert node["read_only"] is True
        assert node["cap_drop"] == ["ALL"]


def test_a_machine_that_cannot_build_says_so_by_its_own_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the tests can tell what the machine lacks from what we broke."""

    def refuse(*_command: object) -> str:
        raise offline.CannotBuildError("the mirror is out of reach.")

    monkeypatch.setattr(offline, "run", refuse)
    assert offline.main() == offline.CANNOT_BUILD
    assert "the mirror is out of reach" in capsys.readouterr().err


def test_a_worker_offers_what_it_is_told_to_and_writes_where_it_may() -> None:
    """The root of its container is read-only."""
    told = spark.command("worker", "w", {"SPARK_WORKER_CORES": "3", "SPARK_WORKER_MEMORY": "2g"})
    text = " ".join(told)
    assert "--cores 3 --memory 2g" in text
    assert "--work-dir /tmp/" in text
    assert told[-1] == spark.MASTER


def test_a_daemon_that_is_none_is_refused() -> None:
    """In one sentence."""
    with pytest.raises(ClusterError, match="say master or worker"):
        spark.command("", "host", {})
