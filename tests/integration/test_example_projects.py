"""The Python projects of examples/, in copies of their folders, as a reader runs them.

`tests/docker/test_example_projects.py` runs those that need containers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run_in_copy(project: str, folder: Path, *command: str) -> str:
    """Run a command in a copy of a project; return its output."""
    copied = folder / project
    shutil.copytree(EXAMPLES / project, copied)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=copied,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("project", "passed"), [("pytest-project", 3), ("topic-policy", 4), ("asyncio-admin", 4)]
)
def test_the_tests_of_a_project_pass(project: str, passed: int, tmp_path: Path) -> None:
    plugin = ("-p", "bridgehead.pytest_plugin")  # An installed bridgehead needs no option.
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin)
    assert re.search(rf"^{passed} passed in", run_in_copy(project, tmp_path, *command), re.M)


@pytest.mark.long
def test_the_scenario_passes(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    output = run_in_copy("scenario", tmp_path, sys.executable, "scenario.py", run)
    assert int(output.split(" topics were created")[0].split()[-1]) >= 16
    # The faults took effect, and no acknowledged write was lost.
    for name in ("faults_take_effect", "acknowledged_write_is_kept", "at_most_once"):
        assert re.search(rf"^PASS +\S+ +{name} +[1-9]", output, re.M), output


def test_each_project_is_listed_and_run() -> None:
    """A new folder needs a row in examples/README.md and a test."""
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    listed = set(re.findall(r"^\| \[([\w-]+)\]", (EXAMPLES / "README.md").read_text(), re.M))
    containers = (ROOT / "tests/docker/test_example_projects.py").read_text()
    tests = Path(__file__).read_text() + containers
    assert folders == listed
    assert {name for name in folders if f'"{name}"' not in tests} == set()
