"""`make demo` and the small demos, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.processes import holders, open_to_others

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, columns: int = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data directory, not created yet."""
    return tmp_path_factory.mktemp("shown") / "demo"


@pytest.fixture(scope="module")
def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    """The finished process of the demo."""
    return run("demo", "--data-dir", str(folder))


def test_demo_passes_and_judge_repeats_its_verdicts(
    demo: subprocess.CompletedProcess[str], folder: Path
) -> None:
    """The demo shows every chapter and passes. The judge finds no violation in its evidence."""
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for chapter in range(1, 7):
        assert f"\n{chapter}. " in demo.stdout
    assert "num-messages-redirected-count" in demo.stdout
    assert "none failed" in demo.stdout
    judge = run("judge", str(folder), "--json")
    assert judge.returncode == 0, judge.stdout
    verdicts = {row["property"]: row["verdict"] for row in json.loads(judge.stdout)["properties"]}
    # These properties may have no data: the demo has no rejections, timeouts, records, migrations,
    # validations, Envelopes with errors, authorizer, logins or scenario, and not every run has a
    # resend.
    assert {of for of, verdict in verdicts.items() if verdict != "PASS"} <= {
        *("D2", "D4", "D6", "D9", "D11", "D12", "F6", "F7", "A1", "A10", "L7", "T1")
    }
    assert all(of in demo.stdout for of in verdicts)


@pytest.mark.long
def test_specification_explains_the_demo(
    demo: subprocess.CompletedProcess[str], folder: Path
) -> None:
    assert demo.returncode == 0
    judge = run("judge", str(folder), "--spec")
    if "TLC is missing" in judge.stderr:
        pytest.skip("NOT TESTED: TLC is missing (make tlc-jar)")
    assert judge.returncode == 0, judge.stdout + judge.stderr
    (explained, requests) = re.findall(r"(\d+) of (\d+) requests are explained", judge.stdout)[0]
    assert explained == requests != "0"


def test_judge_rejects_a_tampered_run(
    demo: subprocess.CompletedProcess[str], folder: Path, tmp_path: Path
) -> None:
    """The judge names the file that lost an event. After resealing, the verdict is UNKNOWN."""
    assert demo.returncode == 0
    tampered = shutil.copytree(folder, tmp_path / "demo", ignore=shutil.ignore_patterns("*.sock"))
    files = tampered.glob("evidence/run=*/node=*/*.jsonl")
    victim = max(files, key=lambda path: path.stat().st_size)
    lines = victim.read_text().splitlines(keepends=True)
    middle = len(lines) // 2
    victim.write_text("".join(lines[:middle] + lines[middle + 1 :]))
    judge = run("judge", str(tampered))
    assert judge.returncode == 3
    assert f"{victim.name} has shrunk" in judge.stderr
    assert run("judge.evidence", "seal", str(victim.parents[1])).returncode == 0
    judge = run("judge", str(tampered))
    assert judge.returncode == 3, judge.stdout
    assert "UNKNOWN   K3" in judge.stdout


SHOWN = {
    "policies": (
        *("set retention.ms=1", "reassign ledger", "delete records", 'exceeds 4 partitions.")'),
        *("INFO 1.", "version 4 lacks POLICY_VIOLATION: ledger"),
    ),
    "dialects": ("... payments at", "AlterTopics never shipped", "executes a client"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ["policies", "dialects"])
def test_small_demo_passes(name: str) -> None:
    """The demo gets every response that it expects. Its output fits into 80 columns."""
    demo = run("bridgehead.cli.main", "demo", name, columns=80)
    assert max(map(len, demo.stdout.splitlines())) <= 80
    assert "…" not in demo.stdout
    assert [text for text in SHOWN[name] if text not in demo.stdout] == []
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Every response was the expected one." in demo.stdout


# `bridgehead demo authorization` shows error codes, log lines and metrics of four attempts.


def test_authorization_demo_passes(tmp_path: Path) -> None:
    """It exits with 0 and prints the log lines and the metrics, but no secret."""
    command = [sys.executable, "-m", "bridgehead.cli.main", "demo", "authorization"]
    demo = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "demo")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for code in ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"):
        assert code in demo.stdout
    assert "UNKNOWN_SERVER_ERROR" in demo.stdout
    assert "Principal = User:mallory is Denied Operation = ClusterAction" in demo.stdout
    assert "request-forwarding-to-controller-authorization-fail-count" in demo.stdout
    assert "Topics at the end: orders." in demo.stdout
    assert "-secret" not in demo.stdout
    assert open_to_others(tmp_path / "demo") == []
    held = holders(tmp_path / "demo", b"-secret")
    assert {file for file in held if not re.fullmatch(r"nodes/\d+/node\.properties", file)} == set()
    assert held
