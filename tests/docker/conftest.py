"""The Docker engine, and our images, built once a session. Without an engine tests are skipped."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from deploy.compose_plugin import docker_config
from deploy.offline import CannotBuildError
from deploy.prerequisites import CANNOT_BUILD

ROOT = Path(__file__).parent.parent.parent
NO_ENGINE = "no Docker engine answers; start dockerd and run `make test-docker` again."


def not_tested(reason: str) -> NoReturn:
    """Skip tests whose tools this machine lacks; .ci/run repeats the skip messages."""
    pytest.skip(f"NOT TESTED: {reason}")


def engine_responds() -> bool:
    """Return whether the client reaches an engine."""
    command = ("docker", "version", "--format={{.Server.Version}}")
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """An engine with Compose v2; testcontainers pulls no helper image from a registry."""
    if not engine_responds():
        not_tested(NO_ENGINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
        try:
            folder = docker_config()
        except CannotBuildError as error:
            not_tested(f"Docker Compose v2 is missing: {error}")
        if folder is not None:
            patch.setenv("DOCKER_CONFIG", folder)
        yield


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let one process at a time into the block, also of several workers of pytest-xdist."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def images(engine: None, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The images, built from Debian and Python packages by the first worker that needs them."""
    if os.environ.get("BRIDGEHEAD_IMAGES") == "there":
        return
    if worker_id == "master":
        _build()
        return
    folder = tmp_path_factory.getbasetemp().parent  # the folder of all workers
    with locked(folder / "images.lock"):
        if not (folder / "images.built").exists():
            _build()
            (folder / "images.built").touch()


def _build() -> None:
    command = (sys.executable, "-m", "deploy.offline")
    result = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode == CANNOT_BUILD:
        not_tested(result.stderr.strip())
    assert result.returncode == 0, result.stderr
    subprocess.run(["make", "image-offline"], cwd=ROOT, check=True)


@pytest.fixture
def mapped_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The ports 9091 to 9094 of the host, for one test at a time."""
    with locked(tmp_path_factory.getbasetemp().parent / "mapped_ports.lock"):
        yield
