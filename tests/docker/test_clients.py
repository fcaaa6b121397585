"""The modules of clients/ for Java, Go and Node, each with its own tests in its own language.

Each test runs in a copy, because the tools write beside the sources. Without a Docker engine the
modules' tests of containers are skipped; those of child processes still run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.conftest import NO_ENGINE, ROOT, engine_responds, not_tested

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
COMMANDS = {
    "java": (("mvn", "-B", "-ntp", "install"),),
    "go": (("go", "vet", "./..."), ("go", "test", "-count=1", "-v", "./...")),
    "node": (("npm", "ci", "--no-audit", "--no-fund"), ("npm", "test")),
}
PASSED = {
    "java": r"Tests run: 3, Failures: 0, Errors: 0, Skipped: 0",
    "go": r"--- PASS: Test(?:.|\n)*--- PASS: Test(?:.|\n)*--- PASS: Test",
    "node": r"pass 3\n",
}
LINES_MAX = 250


without_packages = shutil.ignore_patterns("node_modules", "target")


def require(language: str) -> None:
    """Skip the test if the language's tool is missing."""
    for tool in {command[0] for command in COMMANDS[language]}:
        if shutil.which(tool) is None:
            not_tested(f"{language}: {tool} is missing.")


def run_in_copy(folder: Path, commands: tuple[tuple[str, ...], ...]) -> str:
    """Run commands in `folder`, with the checkout's `bridgehead`; return their output."""
    environment = {
        **os.environ,
        "BRIDGEHEAD_COMMAND": str(Path(sys.executable).with_name("bridgehead")),
        "TESTCONTAINERS_RYUK_DISABLED": "true",  # its image would be pulled
        "GOFLAGS": "-buildvcs=false",
    }
    output = ""
    for command in commands:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        output += done.stdout
    return output


@pytest.fixture(scope="session")
def image(request: pytest.FixtureRequest) -> None:
    """The image `bridgehead`, if there is an engine."""
    if engine_responds():
        request.getfixturevalue("images")


@pytest.mark.parametrize("language", COMMANDS)
def test_a_client_fails_over_in_each_language(language: str, image: None, tmp_path: Path) -> None:
    require(language)
    folder = tmp_path / "clients" / language
    shutil.copytree(ROOT / "clients" / language, folder, ignore=without_packages)
    output = run_in_copy(folder, COMMANDS[language])
    if engine_responds():
        assert re.search(PASSED[language], output), output[-6000:]
    else:
        not_tested(f"{language}: {NO_ENGINE}")


@pytest.mark.parametrize(
    "sources", ["java/src/main/java/bridgehead/*.java", "go/bridgehead.go", "node/index.js"]
)
def test_a_module_is_thin(sources: str) -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "clients").glob(sources))
    assert 0 < lines <= LINES_MAX
