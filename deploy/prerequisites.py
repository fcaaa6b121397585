"""`python3 -m deploy.prerequisites`: lists what this machine lacks for `make image-offline`.

The program prints one line for each missing thing, with the remedy. It runs before any download,
so it uses only the standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from bridgehead.exit_codes import ExitCode

BASE = "bridgehead-base:bookworm"
CHECKOUT = Path(__file__).resolve().parent.parent
CANNOT_BUILD = ExitCode.CANNOT_RUN
# The free space that the build needs. Afterwards, images with their build cache take 2.3 GB, wheels
# 0.5 GB and the root file system 0.3 GB.
IMAGES_GB, WHEELS_GB, ROOT_GB = 4, 1, 1

Run = Callable[..., "tuple[int, str]"]
"""Runs a command; returns its exit status and output, or 127 if it is not installed."""


def run(*command: str) -> tuple[int, str]:
    """Run a command; see `Run`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, "it did not answer within a minute"
    return done.returncode, done.stdout + done.stderr


def missing(run: Run = run, free: Callable[[Path], int] | None = None) -> list[str]:
    """Return a sentence for each missing thing. `free` returns a folder's free bytes."""
    engine = missing_engine(run)
    sentences = [*engine, *missing_compose(run)]
    if engine or not run("docker", "images", "--quiet", BASE)[1].strip():
        sentences += missing_debootstrap(run)
    root = "" if engine else run("docker", "info", "--format={{.DockerRootDir}}")[1].strip()
    return sentences + missing_space(root, free or (lambda folder: shutil.disk_usage(folder).free))


def missing_engine(run: Run) -> list[str]:
    """Return why no container engine can be used; an empty list if one can."""
    status, output = run("docker", "version", "--format={{.Server.Version}}")
    if status == 127:
        return ["Docker is missing: sudo apt-get install docker.io"]
    if "permission denied" in output:
        return ["The Docker engine denies access: sudo usermod -aG docker $USER, and log in again"]
    return ["No Docker engine answers: sudo systemctl start docker"] if status else []


def missing_compose(run: Run) -> list[str]:
    """Return how to install Compose v2 if it is missing, else an empty list."""
    if run("docker", "compose", "version")[0] == 0:
        return []
    return ["Docker Compose v2 is missing: python3 -m deploy.compose_plugin"]


def missing_debootstrap(run: Run) -> list[str]:
    """Return a sentence for each thing that the build of the base image lacks."""
    sentences = []
    if run("debootstrap", "--version")[0]:
        sentences.append("debootstrap is missing: sudo apt-get install debootstrap")
    if os.geteuid() != 0:
        sentences.append("debootstrap needs root: sudo --preserve-env=PATH make image-offline")
    return sentences


def missing_space(docker_root: str, free: Callable[[Path], int]) -> list[str]:
    """Return a sentence for each file system with too little space."""
    needs = [(CHECKOUT, WHEELS_GB), (Path(tempfile.gettempdir()), ROOT_GB)]
    if docker_root and Path(docker_root).is_dir():
        needs.insert(0, (Path(docker_root), IMAGES_GB))
    devices: dict[int, tuple[Path, int]] = {}
    for folder, gigabytes in needs:
        device = folder.stat().st_dev
        first, sum_before = devices.get(device, (folder, 0))
        devices[device] = first, sum_before + gigabytes
    return [
        f"{folder} has {free(folder) / 1e9:.1f} GB of free space, and the build needs {needed} GB: "
        "delete files, for example with docker system prune"
        for folder, needed in devices.values()
        if free(folder) < needed * 10**9
    ]


def report(sentences: Iterable[str]) -> int:
    """Print the sentences; return the exit status."""
    missing_parts = list(sentences)
    for sentence in missing_parts:
        sys.stderr.write(f"{sentence}\n")
    return CANNOT_BUILD if missing_parts else 0


if __name__ == "__main__":
    sys.exit(report(missing()))
