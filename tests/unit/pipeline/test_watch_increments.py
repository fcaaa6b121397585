"""`pipeline watch` copies each complete line of a growing run once, whatever a kill interrupts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

import pytest

from event_log.evidence import MANIFEST
from pipeline.__main__ import main
from pipeline.watch.command import follow
from pipeline.watch.increments import Increments
from pipeline.watch.stream import Stream, WatchError, only_watch
from pipeline.watch.summary import Summary


class KilledError(BaseException):
    """The process ended here."""


def append(run: Path, name: str, text: str) -> None:
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as opened:
        opened.write(text)


def copied(folder: Path) -> list[str]:
    return [
        line
        for path in sorted((folder / "lines").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def test_a_line_is_copied_when_it_is_complete(tmp_path: Path) -> None:
    run, folder = tmp_path / "run", tmp_path / "watch"
    append(run, "node=1/events-a-0000.jsonl", "one\ntw")
    increments = Increments(run, folder)
    assert increments.take() == len("one\n")
    assert increments.take() == 0
    append(run, "node=1/events-a-0000.jsonl", "o\n")
    append(run, "node=1/events-a-0001.jsonl", "three\n")
    append(run, "zookeeper/final.jsonl", "not an event\n")
    assert increments.take() == len("two\nthree\n")
    assert copied(folder) == ["one", "two", "three"]


def test_long_lines_are_copied_whole(tmp_path: Path) -> None:
    run, folder = tmp_path / "run", tmp_path / "watch"
    long, cut = "x" * (3 << 20), "y" * (2 << 20)
    append(run, "node=1/events-a-0000.jsonl", f"{long}\n{cut}")
    assert Increments(run, folder).take() == len(long) + 1
    assert copied(folder) == [long]


@pytest.mark.parametrize("step", ["replace", "_store"])
def test_a_killed_copy_is_made_again(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = tmp_path / "run", tmp_path / "watch"
    append(run, "node=1/events-a-0000.jsonl", "one\n")
    Increments(run, folder).take()
    append(run, "node=1/events-a-0000.jsonl", "two\n")

    def kill(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        target = "pipeline.watch.increments.os.replace"
        if step == "_store":
            target = "pipeline.watch.increments.Increments._store"
        patch.setattr(target, kill)
        with pytest.raises(KilledError):
            Increments(run, folder).take()
    Increments(run, folder).take()
    assert copied(folder) == ["one", "two"]


def test_lines_whose_copies_were_dropped_are_not_copied_again(tmp_path: Path) -> None:
    run, folder = tmp_path / "run", tmp_path / "watch"
    append(run, "node=1/events-a-0000.jsonl", "one\n")
    increments = Increments(run, folder)
    increments.take()
    increments.drop_copied()
    assert Increments(run, folder).take() == 0
    assert copied(folder) == []


# `pipeline watch` shows each batch once, and ends when the run is sealed.


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
