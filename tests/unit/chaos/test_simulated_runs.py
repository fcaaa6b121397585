"""Scenarios on simulated nodes: they pass, repeat exactly, and find a seeded bug."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chaos.player import Say
from chaos.result import Result
from chaos.scenario import Scenario
from chaos.scenarios import SCENARIOS
from chaos.simulated import run as simulated_run
from chaos.simulated.run import Runner, run
from judge.verdicts import Verdict

ROOT = Path(__file__).parents[3]
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def simulate(name: str, seed: int, folder: Path) -> Result:
    return run(BY_NAME[name], seed, folder / f"{name}-{seed}", lambda _sentence: None)


@pytest.mark.parametrize(
    "name",
    [
        "controller_pause_past_session",
        "reply_of_commit_lost",
        "controller_zookeeper_cut",
        "polite_stop",
    ],
)
def test_scenario_passes(name: str, tmp_path: Path) -> None:
    result = simulate(name, 1, tmp_path)
    assert (result.verdict, result.wrong) == (Verdict.PASS, [])
    assert result.acknowledged >= BY_NAME[name].after


def test_without_the_fence_the_canary_violates_w1_and_w2(tmp_path: Path) -> None:
    result = simulate("canary", 1, tmp_path)
    assert result.verdict is Verdict.PASS, result.wrong
    assert {"W1", "W2"} <= set(result.violated)


def test_seeds_give_different_histories(tmp_path: Path) -> None:
    name = "controller_pause_past_session"
    assert simulate(name, 1, tmp_path).digest != simulate(name, 2, tmp_path).digest


def test_a_seed_gives_the_same_history_with_every_hash_seed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from chaos.scenarios import SCENARIOS;"
        "from chaos.simulated.run import simulate;"
        "(scenario,) = [scenario for scenario in SCENARIOS if scenario.name == 'there_and_back'];"
        "print(simulate(scenario, 3, Path(sys.argv[1]), lambda _: None).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / hash_seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_run_after_other_runs_gives_the_same_history(tmp_path: Path) -> None:
    alone = simulate("random_faults", 3, tmp_path)
    with closing(Runner(BY_NAME["random_faults"], lambda _sentence: None)) as runner:
        digests = [runner.run(seed, tmp_path / f"{at}").digest for at, seed in enumerate((2, 3))]
    assert digests[1] == alone.digest
    assert digests[0] != digests[1]


def test_a_crashed_run_shows_its_traceback_and_the_next_run_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def crash_with_seed_1(scenario: Scenario, seed: int, folder: Path, _say: Say) -> Result:
        if seed == 1:
            raise EOFError("the run met the end of a stream")
        return Result(scenario=scenario.name, seed=seed, tier="simulated", folder=str(folder))

    monkeypatch.setattr(simulated_run, "simulate", crash_with_seed_1)
    with closing(Runner(BY_NAME["quiet_sea"], lambda _sentence: None)) as runner:
        results = [runner.run(seed, tmp_path) for seed in (1, 2)]
    assert results[0].wrong == ["the simulation crashed: its traceback is above"]
    assert (results[1].seed, results[1].wrong) == (2, [])
    assert "the run met the end of a stream" in capfd.readouterr().err


def test_random_faults_injects_five_faults_into_two_hundred_operations(tmp_path: Path) -> None:
    result = simulate("random_faults", 1, tmp_path)
    assert (result.verdict, result.wrong) == (Verdict.PASS, [])
    assert result.acknowledged >= 200
    lines = [
        json.loads(line)
        for path in tmp_path.rglob("harness=*/*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert sum(line["kind"] == "fault_injected" for line in lines) == 5
