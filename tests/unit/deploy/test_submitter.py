"""The compose service `submitter` seals a run and judges it. With a key it signs the manifest."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy import submitter
from event_log.evidence import FINAL_DUMP, MANIFEST, RUN, RunDescription
from judge.exit_codes import CANNOT_RUN
from judge.seals import SIGNATURE, signature

KEY = b"0123456789abcdef"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unsealed run of a project whose brokers have stopped."""
    folder = tmp_path / "run=compose"
    folder.mkdir()
    described = RunDescription(run_id="compose")
    (folder / RUN).write_text(json.dumps(asdict(described)), encoding="utf-8")
    logs = tmp_path / "datalog"
    (logs / "1").mkdir(parents=True)
    monkeypatch.setattr(submitter, "EVIDENCE", tmp_path)
    monkeypatch.setattr(submitter, "LOGS", logs)
    for name, value in (("KAFKA_ZOOKEEPER_CONNECT", "unused"), ("SPARK_MEMORY", "1g")):
        monkeypatch.setenv(name, value)

    async def dump(_connect: str, run: Path, _name: str) -> None:
        (run / FINAL_DUMP).parent.mkdir(exist_ok=True)
        (run / FINAL_DUMP).write_text("", encoding="utf-8")

    monkeypatch.setattr(submitter, "dump", dump)
    return folder


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the submitter would run; they are only recorded."""
    result: list[list[str]] = []

    def record(command: list[str], **_: object) -> SimpleNamespace:
        result.append(list(command))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", record)
    return result


def test_the_manifest_is_signed_with_the_key_and_the_pipeline_checks_the_signature(
    run: Path, commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "seal.key"
    file.write_bytes(KEY)
    file.chmod(0o600)
    monkeypatch.setenv("BRIDGEHEAD_SEAL_KEY", str(file))
    assert submitter.main() == 0
    expected = signature(KEY, (run / MANIFEST).read_bytes())
    assert (run / SIGNATURE).read_bytes().strip() == expected
    assert f"--seal-key={file}" in commands[0]
    assert KEY.decode() not in " ".join(commands[0])


def test_without_a_key_the_manifest_is_not_signed(run: Path, commands: list[list[str]]) -> None:
    assert submitter.main() == 0
    assert (run / MANIFEST).is_file()
    assert not (run / SIGNATURE).exists()
    assert not any("seal-key" in word for word in commands[0])


def test_nothing_is_sealed_with_a_key_that_others_can_read(
    run: Path,
    commands: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "seal.key"
    file.write_bytes(KEY)
    file.chmod(0o644)
    monkeypatch.setenv("BRIDGEHEAD_SEAL_KEY", str(file))
    assert submitter.main() == CANNOT_RUN
    assert "Other users can read the seal key" in capsys.readouterr().err
    assert not (run / MANIFEST).exists()
    assert commands == []
