"""The sizes of the images, and the users as which their programs run."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports
from tests.docker.compose import left_behind

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

MEGABYTE = 1_000_000


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def inspected(image: str) -> dict[str, Any]:
    (image_,) = json.loads(docker("inspect", f"{image}:latest"))
    assert isinstance(image_, dict)
    return image_


@pytest.mark.parametrize(
    ("image", "megabytes_max"),
    [
        ("bridgehead-node", 170),
        ("bridgehead-zookeeper", 275),
        ("bridgehead", 275),
        ("bridgehead-tools", 900),
    ],
)
def test_image_sizes(images: None, image: str, megabytes_max: int) -> None:
    """A broker needs neither Java nor Spark, and ZooKeeper does not need Spark."""
    assert inspected(image)["Size"] < megabytes_max * MEGABYTE


def test_node_image_has_neither_java_nor_spark(images: None) -> None:
    look = "import importlib.util as u, shutil; print(u.find_spec('pyspark'), shutil.which('java'))"
    python = "/opt/bridgehead/bin/python"
    assert docker("run", "--rm", "bridgehead-node:latest", python, "-c", look) == "None None\n"


@pytest.mark.parametrize("image", ["", "-node", "-zookeeper", "-tools"])
def test_no_image_runs_as_root(images: None, image: str) -> None:
    assert inspected(f"bridgehead{image}")["Config"]["User"] == "bridgehead"


# The commands of docs/containers.md work.

ROOT = Path(__file__).parent.parent.parent
PORTS = (29092, 29093, 29094, 9404, 9405, 9406)
BLOCK = re.compile(r"^## Start$.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def ports() -> Iterator[Ports]:
    """Reservations for one test."""
    with Ports() as reserved:
        yield reserved


def test_commands_that_start_a_compose_cluster_work(images: None, ports: Ports) -> None:
    """The test runs them in order and stops at the first failure."""
    match = BLOCK.search((ROOT / "docs/containers.md").read_text())
    assert match is not None, "the page has no commands"
    try:
        for port in PORTS:
            ports.demand(LOOPBACK, port)
    except ClusterError as error:
        pytest.skip(f"NOT TESTED: the page's cluster has fixed ports. {error}")
    project = f"bridgehead-page-{secrets.token_hex(3)}"
    environment = {**os.environ, "COMPOSE_PROJECT_NAME": project}
    try:
        done = subprocess.run(
            ["bash", "-eux", "-c", match[1]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"broker \d is controller", done.stdout)
        assert "kafka_controller_kafkacontroller_activecontrollercount" in done.stdout
        assert left_behind(project) == ""
    finally:
        subprocess.run(
            ["docker", "compose", "down", "--volumes"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
        )
