"""The sizes of the images, and the users as which their programs run."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

MEGABYTE = 1_000_000


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def inspected(image: str) -> dict[str, Any]:
    (found,) = json.loads(docker("inspect", f"{image}:latest"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("image", "megabytes_max"),
    [
        ("bridgehead-node", 300),
        ("bridgehead-zookeeper", 400),
        ("bridgehead", 400),
        ("bridgehead-tools", 1400),
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
