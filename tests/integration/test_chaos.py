"""`bridgehead chaos` runs scenarios on real processes, and its judge finds a seeded bug."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import psutil
import pytest

from chaos.scenarios import SCENARIOS
from tests.integration.processes import wait_until

COMMAND = [sys.executable, "-m", "bridgehead.cli.main", "chaos"]
ROOT = Path(__file__).parents[2]


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_list_names_every_scenario_in_80_columns() -> None:
    listed = chaos("list")
    assert listed.returncode == 0
    lines = listed.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    names = [line.split()[0] for line in lines if line.endswith(")") and line[0] != " "]
    assert names == [scenario.name for scenario in SCENARIOS]


def test_an_unknown_scenario_is_a_usage_error() -> None:
    rejected = chaos("run", "no_such_scenario")
    assert rejected.returncode == 2
    assert "no_such_scenario" in rejected.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["controller_pause_past_session", "reply_of_commit_lost"])
def test_scenario_passes_and_leaves_result_files(name: str, tmp_path: Path) -> None:
    finished = chaos("run", name, "--out", str(tmp_path))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert (run["scenario"], run["verdict"]) == (name, "PASS")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    assert max(map(len, finished.stdout.splitlines())) <= max(80, len(str(tmp_path)) + 60)


@pytest.mark.long
def test_without_the_fence_the_canary_violates_w1_and_w2(tmp_path: Path) -> None:
    """The nodes of this scenario have seeded bugs. W1: single_writer, W2: every_write_is_fenced."""
    finished = chaos("run", "canary", "--out", str(tmp_path))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (run,) = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert {"W1", "W2"} <= set(run["violated"])


@pytest.mark.long
def test_a_terminated_command_leaves_no_process(tmp_path: Path) -> None:
    def running() -> list[psutil.Process]:
        processes = psutil.process_iter(["cmdline"])
        return [
            process
            for process in processes
            if str(tmp_path) in " ".join(process.info["cmdline"] or [])
        ]

    command = [*COMMAND, "run", "quiet_sea", "--seeds", "100", "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as started:
        wait_until(lambda: len(running()) > 3, timeout_s=60)  # ZooKeeper and nodes
        started.send_signal(signal.SIGTERM)
    wait_until(lambda: not running(), timeout_s=60)
