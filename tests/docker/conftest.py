"""The images, built once for a session; an engine, or a loud word that there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.compose_plugin import docker_config

ROOT = Path(__file__).parent.parent.parent
LOUD = "NOT TESTED: no Docker engine answers; start dockerd and run `make test-docker` again."


def engine_answers() -> bool:
    """Whether `docker info` reaches an engine."""
    try:
        done = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and b"Server Version" in done.stdout


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """An engine, with Compose v2, and testcontainers that asks no registry for a helper."""
    if not engine_answers():
        sys.stderr.write(f"\n{LOUD}\n")
        pytest.skip(LOUD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
        if (folder := docker_config()) is not None:
            patch.setenv("DOCKER_CONFIG", folder)
        yield


@pytest.fixture(scope="session")
def images(engine: None) -> None:
    """Built from Debian and Python packages alone; what has not changed is not built again."""
    if os.environ.get("BRIDGEHEAD_IMAGES") == "there":
        return
    subprocess.run(["make", "image-offline"], cwd=ROOT, check=True)
