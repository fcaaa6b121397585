"""Runs of the tier `local` that end early. The tests start no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.local import network, run
from chaos.local.network import ProxiedNetwork
from chaos.player import NoProgressError
from chaos.scenarios.load import QUIET_SEA
from judge.verdicts import Verdict


async def test_a_crashed_run_has_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a result, `junit.xml` would lack the run, and the runs after it would not start."""

    async def crash(*_: object) -> None:
        raise AssertionError("the controller changed before its session ended")

    monkeypatch.setattr(run, "_play", crash)
    result = await run.run(QUIET_SEA, 1, tmp_path / "run", lambda _: None)
    assert result.verdict is Verdict.CRASHED
    assert result.wrong == ["the run crashed: its traceback is above"]
    assert "the controller changed before its session ended" in capsys.readouterr().err


async def test_evidence_that_cannot_be_read_does_not_hide_why_the_run_broke_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> None:
        (tmp_path / "run" / "evidence").mkdir(parents=True)  # a folder without a run
        raise NoProgressError("no operation was acknowledged")

    monkeypatch.setattr(run, "_play", hang)
    result = await run.run(QUIET_SEA, 1, tmp_path / "run", lambda _: None)
    assert result.verdict is Verdict.HANG
    assert result.wrong[0] == "no operation was acknowledged"


@pytest.mark.parametrize("reply", [False, True])
async def test_a_fault_that_waits_for_a_commit_fails_if_none_comes(
    reply: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_COMMIT_WITHIN_S", 0.01, raising=False)
    idle = ProxiedNetwork(tmp_path, (1,), (1,))
    with pytest.raises(NoProgressError, match="no commit was lost within"):
        await idle.lose_commit(1, reply=reply)
