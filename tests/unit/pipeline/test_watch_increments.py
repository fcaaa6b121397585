"""`pipeline watch` copies each complete line of a growing run once, whatever a kill interrupts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.watch.increments import Increments


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
