"""A kill at any step of the publication of a table leaves its old rows or its new ones."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from pipeline.folders import MADE, Folders, code_fingerprint
from pipeline.frames import Frames
from pipeline.places import local_place
from pipeline.table import Table


def _never(_: Frames) -> DataFrame:
    pytest.fail("the table must not be built")


TABLE = Table(name="gold/rows", inputs=(), schema="run STRING", build=_never)


class KilledError(BaseException):
    """The process ended here."""


class Steps:
    """Counts the changes of the file system, and ends the process at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, last: int) -> None:
        self.done, self._last = 0, last
        for owner, name in ((os, "replace"), (shutil, "rmtree"), (Path, "write_bytes")):
            patch.setattr(owner, name, self._counted(getattr(owner, name), name))

    def _counted(self, change: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.done += 1
            if self.done > self._last:
                if name == "write_bytes":
                    path, data = arguments
                    change(path, data[: len(data) // 2])
                raise KilledError
            return change(*arguments, **options)

        return counted


def rows(out: Path, name: str, run: str) -> None:
    part = out / TABLE.name / name / f"run={run}"
    part.mkdir(parents=True)
    (part / "part-0.parquet").touch()


def publish(out: Path, digest: str, name: str) -> None:
    folders = Folders(cast(Any, None), out, {"a": digest, "b": digest})
    folders._publish(TABLE, ["a", "b"], local_place(out / TABLE.name / name))


def test_kill_at_any_step_leaves_old_or_new_rows(tmp_path: Path) -> None:
    outcomes = []
    for last in range(10):
        out = tmp_path / str(last)
        rows(out, "made=old", "a")
        publish(out, "before", "made=old")
        rows(out, "made=new", "a")
        rows(out, "made=new", "b")
        with pytest.MonkeyPatch.context() as patch:
            steps = Steps(patch, last)
            with contextlib.suppress(KilledError):
                publish(out, "after", "made=new")
        made = json.loads((out / TABLE.name / MADE).read_bytes())
        outcomes.append((made["a"]["folder"], made["b"]["folder"]))
        assert (out / TABLE.name / str(made["a"]["folder"]) / "run=a" / "part-0.parquet").exists()
        complete = Folders(cast(Any, None), out, {"a": "after", "b": "after"}).missing(TABLE.name)
        assert complete == ([] if made["a"]["folder"] == "made=new" else ["a", "b"])
        if steps.done <= last:
            break
    assert set(outcomes) == {("made=old", None), ("made=new", "made=new")}
    assert not (out / TABLE.name / "made=old").exists(), "the old rows were not deleted"


def test_an_incomplete_record_of_a_table_counts_as_missing(tmp_path: Path) -> None:
    """A file system may show `_made.json` before it is complete."""
    rows(tmp_path, "made=x", "a")
    publish(tmp_path, "now", "made=x")
    record = tmp_path / TABLE.name / MADE
    record.write_bytes(record.read_bytes()[:20])
    folders = Folders(cast(Any, None), tmp_path, {"a": "now", "b": "now"})
    assert folders.missing(TABLE.name) == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["pipeline/verdicts.py", "event_log/commits.py", "judge/rights.py"]
)
def test_tables_are_built_again_after_a_change_of_the_code_or_the_rights(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, read = code_fingerprint(), Path.read_bytes
    assert code_fingerprint() == before

    def changed(path: Path) -> bytes:
        return read(path) + b"#" * path.as_posix().endswith(name)

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert code_fingerprint() != before
