"""`make demo` is what a stranger sees first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a demo leaves its evidence; not there yet."""
    return tmp_path_factory.mktemp("shown") / "demo"


@pytest.fixture(scope="module")
def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    """A demo that was shown."""
    return run("chaos.demo", "--data-dir", str(folder))


def test_the_demo_holds_and_the_judge_says_the_same_of_its_evidence(
    demo: subprocess.CompletedProcess[str], folder: Path
) -> None:
    """
    Exit 0, every chapter shown, every property judged PASS, twice.
    """
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for chapter in range(1, 7):
        assert f"\n{chapter}. " in demo.stdout
    assert "num-messages-redirected-count" in demo.stdout
    assert "none was refused" in demo.stdout
    judge = run("chaos.judge", str(folder), "--json")
    assert judge.returncode == 0, judge.stdout
    verdicts = {row["property"]: row["verdict"] for row in json.loads(judge.stdout)["properties"]}
    # Nobody was refused or left in the dark, perhaps nothing was sent again; no authorizer, and it
    # is no scenario.
    assert {of for of, verdict in verdicts.items() if verdict != "PASS"} <= {
        *("D2", "D4", "F7", "A1", "T1")
    }
    assert all(of in demo.stdout for of in verdicts)


def test_a_tampered_run_does_not_pass(
    demo: subprocess.CompletedProcess[str], folder: Path, tmp_path: Path
) -> None:
    """
    The demo's judge is not decoration: with one event gone the file is refused by name, and if
    it is sealed anew, what needs the event is unknown.
    """
    assert demo.returncode == 0
    tampered = shutil.copytree(folder, tmp_path / "demo", ignore=shutil.ignore_patterns("*.sock"))
    files = tampered.glob("evidence/run=*/node=*/*.jsonl")
    victim = max(files, key=lambda path: path.stat().st_size)
    lines = victim.read_text().splitlines(keepends=True)
    middle = len(lines) // 2
    victim.write_text("".join(lines[:middle] + lines[middle + 1 :]))
    judge = run("chaos.judge", str(tampered))
    assert judge.returncode == 2
    assert f"{victim.name} has shrunk" in judge.stderr
    assert run("chaos.evidence", "seal", str(victim.parents[1])).returncode == 0
    judge = run("chaos.judge", str(tampered))
    assert judge.returncode == 2, judge.stdout
    assert "UNKNOWN   K3" in judge.stdout


@pytest.mark.parametrize("name", ["policies", "dialects"])
def test_a_small_demo_holds(name: str) -> None:
    """
    Its own exit code says so: it compares each answer with the one that it prints.
    """
    demo = run("bridgehead.cli.main", "demo", name)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Every answer was the one that" in demo.stdout
