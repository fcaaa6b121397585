"""`pipeline watch` shows each batch once, and ends when the run is sealed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

import pytest

from event_log.evidence import MANIFEST
from pipeline.__main__ import main
from pipeline.watch.command import follow
from pipeline.watch.stream import Stream, WatchError, only_watch
from pipeline.watch.summary import Summary


class SealedDuringThirdCall:
    """A stream without Spark. The run is sealed during the third call of `advance`."""

    def __init__(self, run: Path) -> None:
        self.calls = 0
        self._run = run

    def advance(self) -> Summary:
        self.calls += 1
        if self.calls == 3:
            (self._run / MANIFEST).touch()
        return Summary(run="r", batch=[0, 0, 0, 1][self.calls - 1])


def test_a_watch_reads_the_lines_that_came_before_the_seal(tmp_path: Path) -> None:
    stream = SealedDuringThirdCall(tmp_path)
    shown: list[int] = []
    options = argparse.Namespace(once=False, every=0.0)
    follow(cast(Stream, stream), tmp_path, lambda summary: shown.append(summary.batch), options)
    assert (stream.calls, shown) == (4, [0, 1])


def test_the_option_once_ends_the_watch_after_one_batch(tmp_path: Path) -> None:
    stream = SealedDuringThirdCall(tmp_path)
    shown: list[int] = []
    options = argparse.Namespace(once=True, every=0.0)
    follow(cast(Stream, stream), tmp_path, lambda summary: shown.append(summary.batch), options)
    assert (stream.calls, shown) == (1, [0])


def test_two_watches_do_not_share_a_folder(tmp_path: Path) -> None:
    another = only_watch(tmp_path)
    rejected = pytest.raises(WatchError, match="Another `pipeline watch` uses")
    with only_watch(tmp_path), rejected, another:
        pytest.fail("both use the folder")
    with only_watch(tmp_path):
        pass


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rejected = pytest.raises(WatchError, match="file/watch cannot be used: Not a directory")
    with rejected, only_watch(tmp_path / "file/watch"):
        pytest.fail("the folder is a file")


@pytest.mark.parametrize(
    ("evidence", "message"),
    [("hdfs://host/run", "give paths, not URIs"), ("nothing-here", "nothing-here is not a folder")],
)
def test_a_run_that_cannot_be_watched_is_named_before_spark_starts(
    evidence: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--evidence", evidence, "--out", str(tmp_path)]) == 4
    assert message in capsys.readouterr().err
