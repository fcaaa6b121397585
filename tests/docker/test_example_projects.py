"""The projects of examples/ that need containers, in copies of their folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker.compose import wait_until
from tests.docker.conftest import ROOT
from tests.docker.test_clients import require, run_in_copy, without_packages
from tests.docker.test_container import docker, health, service

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("project", "passed"),
    [
        ("java-failover", "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0"),
        ("go-failover", "--- PASS: TestTopicIsCreatedAfterTheControllerDied"),
        ("node-failover", "pass 1"),
    ],
)
def test_project_in_another_language_passes(
    images: None, project: str, passed: str, tmp_path: Path
) -> None:
    """README's command for the language, in a copy of its folders."""
    language = project.partition("-")[0]
    (command,) = re.findall(
        rf"^\| {language} \| `(.+)` \|$", (ROOT / "README.md").read_text(), re.M | re.I
    )
    for folder in (f"clients/{language}", f"examples/{project}"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=without_packages)
    require(language)
    output = run_in_copy(tmp_path, (("bash", "-euo", "pipefail", "-c", command),))
    assert passed in output, output[-6000:]


def run_steps(steps: list[str], variables: dict[str, str], folder: Path) -> None:
    """Run the commands of a job in a folder with the test, as the runner does."""
    (folder / "tests").mkdir()
    shutil.copy(EXAMPLES / "ci-services" / "test_failover.py", folder / "tests")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for step in steps:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step],
            cwd=folder,
            env={**os.environ, **variables, "PATH": path, "PIP_NO_INDEX": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / "ci-services" / name).read_text())


def test_job_of_github_actions_passes(images: None, mapped_ports: None, tmp_path: Path) -> None:
    """The service gets what GitHub gives it: ports and variables. The job waits for its health."""
    job = read("github-actions.yml")["jobs"]["failover"]
    kafka = job["services"]["kafka"]
    assert kafka.keys() == {"image", "env", "ports"}
    ports = [f"--publish=127.0.0.1:{port}" for port in kafka["ports"]]
    with service(*ports, **kafka["env"]) as container:
        wait_until(lambda: health(container) == "healthy", "a healthy service")
        run_steps([step["run"] for step in job["steps"] if "run" in step], job["env"], tmp_path)


def test_job_of_gitlab_passes(images: None, mapped_ports: None, tmp_path: Path) -> None:
    """This machine cannot resolve the alias of the service, so the test replaces it."""
    job = read(".gitlab-ci.yml")["failover"]
    (kafka,) = job["services"]
    assert kafka == {"name": "$BRIDGEHEAD_IMAGE", "alias": "kafka"}
    variables = {
        name: text.replace("kafka", "localhost") for name, text in job["variables"].items()
    }
    ports = [f"--publish=127.0.0.1:{port}:{port}" for port in range(9091, 9095)]
    with service(*ports, **variables):  # GitLab passes the variables of a job to its services.
        run_steps(job["script"], variables, tmp_path)


def test_override_replaces_the_kafka_of_a_project(images: None) -> None:
    name = f"bridgehead-test-{uuid.uuid4().hex[:6]}"
    folder = str(EXAMPLES / "compose")
    project = ("compose", "--project-name", name, "--project-directory", folder)
    try:
        docker(*project, "up", "--wait", "kafka")
        docker(*project, "run", "--rm", "app")
        docker(*project, "exec", "-T", "kafka", "bridgehead", "controller", "kill")
        docker(*project, "exec", "-T", "kafka", "bridgehead", "heal")
        topics = ("bridgehead", "topics", "--bootstrap-server", "kafka:9092", "--list")
        assert docker(*project, "run", "--rm", "--no-deps", "app", *topics).splitlines() == [
            "orders"
        ]
    finally:
        docker(*project, "down", "--volumes", "--timeout", "20")
