"""Evidence from a stranger: no tool follows its links, waits for it, or prints it raw.

The judge's exit code 1 means that a property is violated, so a failure of the judge is never 1.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from event_log.evidence import MANIFEST, RUN
from judge import __main__ as judging
from judge.__main__ import main
from judge.evidence.__main__ import main as evidence_main
from judge.evidence.run_files import open_file
from judge.transaction_log import TornLogError, read_log
from pipeline.evidence import PipelineEvidenceError, find_runs
from pipeline.watch.increments import Increments
from tests import golden_histories

CONTROLS = "\x1b]0;owned\x07\x9b2J\u202e"
pytestmark = pytest.mark.timeout(60)  # An error here was a tool that never returned.


def _run(folder: Path) -> Path:
    """Write a sealed run in the layout of a cluster's folder."""
    golden = golden_histories.load("two_segments")
    return golden_histories.expand(golden, folder / "cluster" / "evidence" / "run=golden")


def _unsealed(folder: Path, **description: Any) -> Path:
    run = _run(folder)
    document = json.loads((run / MANIFEST).read_bytes())["run"]
    (run / RUN).write_text(json.dumps({**document, **description}))
    (run / MANIFEST).unlink()
    return run


def _events(run: Path) -> Path:
    return next(run.glob("node=*/events-*.jsonl"))


def _changed(run: Path, change: Callable[[Any], None]) -> None:
    document = json.loads((run / MANIFEST).read_bytes())
    change(document)
    (run / MANIFEST).write_text(json.dumps(document))


def _plant_pipe(run: Path) -> None:
    events = _events(run)
    events.unlink()
    os.mkfifo(events)


def _plant_device(run: Path) -> None:
    events = _events(run)
    events.unlink()
    events.symlink_to("/dev/zero")


def _plant_link_to_a_copy(run: Path) -> None:
    """The linked file has the sealed content: only the link itself is wrong."""
    events = _events(run)
    outside = run.parents[2] / "outside.jsonl"
    events.rename(outside)
    events.symlink_to(outside)


def _plant_linked_folder(run: Path) -> None:
    outside = run.parents[2] / "outside"
    _events(run).parent.rename(outside)
    (run / "node=1").symlink_to(outside)


def _plant_manifest_pipe(run: Path) -> None:
    (run / MANIFEST).unlink(missing_ok=True)
    os.mkfifo(run / MANIFEST)


NOT_REGULAR = [
    _plant_pipe,
    _plant_device,
    _plant_link_to_a_copy,
    _plant_linked_folder,
]


@pytest.mark.parametrize("plant", NOT_REGULAR)
def test_run_with_a_link_or_pipe_is_rejected_by_judge_and_pipeline(
    plant: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    plant(run)
    assert main([str(run)]) == 3
    assert "a run has only folders and regular files: remove it." in capsys.readouterr().err
    with pytest.raises(PipelineEvidenceError, match="a run has only folders and regular files"):
        find_runs(run, copies=tmp_path / "copies")
    with pytest.raises(Exception, match="a run has only folders and regular files"):
        Increments(run, tmp_path / "watch").take()


@pytest.mark.parametrize("plant", [*NOT_REGULAR, _plant_manifest_pipe])
def test_unsealed_run_with_a_link_or_pipe_is_neither_copied_nor_sealed(
    plant: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _unsealed(tmp_path)
    plant(run)
    assert main([str(run)]) == 3
    assert evidence_main(["seal", str(run)]) == 4
    assert capsys.readouterr().err.count("a run has only folders and regular files") == 2


def test_linked_runs_and_evidence_folders_are_not_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    linked = tmp_path / "hostile" / "evidence"
    linked.mkdir(parents=True)
    (linked / "run=linked").symlink_to(run)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "evidence").symlink_to(run.parent)
    for folder in (tmp_path / "hostile", tmp_path / "other"):
        assert main([str(folder)]) == 3
        assert "is a symbolic link" in capsys.readouterr().err
        with pytest.raises(PipelineEvidenceError, match="is a symbolic link"):
            find_runs(folder)


def test_sealing_removes_and_writes_nothing_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "member=1").mkdir(parents=True)
    (victim / "member=1" / "thesis.txt").write_text("years of work")
    logs = tmp_path / "cluster" / "zookeeper"
    logs.mkdir(parents=True)
    (logs / "log.1").write_bytes(_log(1))
    run = _unsealed(tmp_path, log_folders=[str(logs)])
    for path in (run / "zookeeper").iterdir():
        path.unlink()
    (run / "zookeeper").rmdir()
    (run / "zookeeper").symlink_to(victim)
    assert evidence_main(["seal", str(run)]) == 4
    assert [path.name for path in victim.rglob("*")] == ["member=1", "thesis.txt"]


def test_a_sealed_run_keeps_its_manifest_if_it_cannot_be_sealed_again(tmp_path: Path) -> None:
    run = _run(tmp_path)
    (run / RUN).write_text(json.dumps({"run_id": "golden"}))
    (run / "node=1" / "more").symlink_to("/etc/passwd")
    assert evidence_main(["seal", str(run)]) == 4
    assert (run / MANIFEST).is_file()


def _log(zxid: int) -> bytes:
    record = struct.pack(">qiqqi", 0xA, 0, zxid, 0, -11)
    entry = struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    return struct.pack(">4siq", b"ZKLG", 2, 0) + entry + bytes(4096)


@pytest.mark.parametrize("through", ["name", "link", "version-2"])
def test_only_logs_of_the_own_cluster_are_copied(through: str, tmp_path: Path) -> None:
    """run.json may name any folder; its logs must not become part of evidence that is shared."""
    private, zookeeper = tmp_path / "private", tmp_path / "cluster" / "zookeeper"
    (private / "version-2").mkdir(parents=True)
    (private / "version-2" / "log.1").write_bytes(_log(1))
    zookeeper.mkdir(parents=True)
    named = {"name": private, "link": zookeeper / "link", "version-2": zookeeper}[through]
    if through == "link":
        named.symlink_to(private)
    if through == "version-2":
        (zookeeper / "version-2").symlink_to(private / "version-2")
    run = _unsealed(tmp_path, log_folders=[str(named)])
    assert evidence_main(["seal", str(run)]) == 0
    assert not list(run.rglob("log.1"))
    assert evidence_main(["seal", str(run), "--zookeeper-logs", str(private)]) == 0
    assert len(list(run.rglob("log.1"))) == 1  # A person named the folder.


def test_a_file_is_not_read_if_its_size_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path)
    with _events(run).open("ab") as events:
        events.write(b"more")
    opened = []

    def record(folder: Path, name: str) -> Any:
        opened.append(name)
        return open_file(folder, name)

    monkeypatch.setattr("judge.evidence.reading.open_file", record)
    assert main([str(run)]) == 3
    assert "bytes since it was sealed" in capsys.readouterr().err
    assert _events(run).relative_to(run).as_posix() not in opened
    with pytest.raises(PipelineEvidenceError, match="since it was sealed"):
        find_runs(run)


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_sparse_file_is_rejected(
    is_sealed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be larger than any disk, so hashing or copying it takes for ever."""
    run = _run(tmp_path) if is_sealed else _unsealed(tmp_path)
    with _events(run).open("ab") as events:
        events.truncate(1 << 42)
    assert main([str(run)]) == 3
    assert evidence_main(["seal", str(run)]) == 4
    count = 1 if is_sealed else 2  # A sealed copy without run.json cannot be sealed again.
    assert capsys.readouterr().err.count("has a hole; no file of a run has one") == count
    with pytest.raises(PipelineEvidenceError, match="has a hole"):
        find_runs(run, copies=tmp_path / "copies")


def test_a_run_that_needs_more_space_than_there_is_is_not_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert main([str(_unsealed(tmp_path))]) == 3
    assert "cannot be copied" in capsys.readouterr().err


def test_a_run_larger_than_the_memory_is_left_to_the_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 9)
    assert main([str(_run(tmp_path))]) == 3
    assert "judge it with `bridgehead pipeline run`" in capsys.readouterr().err


DEEP = b"[" * 200_000


@pytest.mark.parametrize("name", [MANIFEST, RUN, "zookeeper/dumps.json"])
@pytest.mark.parametrize(
    "content",
    [DEEP, b'{"a":' * 200_000, b'{"format": 1, "run": ' + DEEP, b" " * (17 << 20), b"5", b"\xff"],
    ids=["list", "object", "inside", "large", "number", "bytes"],
)
def test_documents_that_are_deep_large_or_of_another_type_are_undecided(
    name: str, content: bytes, tmp_path: Path
) -> None:
    run = _run(tmp_path) if name == MANIFEST else _unsealed(tmp_path)
    (run / "zookeeper").mkdir(exist_ok=True)
    (run / name).write_bytes(content)
    if name != MANIFEST:
        logs = tmp_path / "logs"
        logs.mkdir()
        (logs / "log.1").write_bytes(_log(1))
        arguments = ["--zookeeper-logs", str(logs)]
        assert evidence_main(["seal", str(run), *arguments]) == 4
    else:
        with pytest.raises(PipelineEvidenceError):
            find_runs(run)
    assert main([str(run)]) == 3


@pytest.mark.parametrize(
    "field", ["log_folders", "expected", "super_users", "versions", "scenario", "seed", "brokers"]
)
@pytest.mark.parametrize("value", [[5], {"a": []}, 0.5, True], ids=repr)
def test_description_with_a_wrong_type_is_undecided(
    field: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(_unsealed(tmp_path, **{field: value}))]) == 3
    assert f"run.json is invalid: {field} is" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["log.zz", "log.", "log.-1", "log.1.gz", "log._1"])
def test_a_log_with_an_odd_name_is_a_gap(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "cluster" / "zookeeper"
    logs.mkdir(parents=True)
    (logs / name).write_bytes(_log(1))
    (logs / "log.1").write_bytes(_log(1))
    run = _unsealed(tmp_path, log_folders=[str(logs), str(logs)])
    assert main([str(run), "--unsealed"]) != 1
    assert "Unexpected" not in capsys.readouterr().err


@pytest.mark.timeout(20)
def test_a_log_full_of_starts_of_records_is_read_in_linear_time(tmp_path: Path) -> None:
    """Each 12 bytes look like an entry whose record ends near the end of the file."""
    count = 100_000
    entries = [struct.pack(">qi", 1, 12 * (count - number) - 12 + 1) for number in range(1, count)]
    path = tmp_path / "log.1"
    path.write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + b"\1" * 12 + b"".join(entries) + b"BB")
    with pytest.raises(TornLogError, match="a damaged record"):
        list(read_log(path))


@pytest.mark.timeout(20)
def test_a_log_of_zeros_is_read_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "log.1"
    path.write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + bytes(20 << 20) + b"\1")
    assert list(read_log(path)) == []


def test_nothing_in_evidence_reaches_the_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)

    def rename(document: Any) -> None:
        document["run"]["run_id"] = f"golden{CONTROLS}\nPASS      all is well"

    (run / "node=1" / "events-z-0000.jsonl").unlink(missing_ok=True)
    _changed(run, rename)
    events = _events(run)
    events.unlink()  # A gap.
    main([str(run)])

    def name_raw(document: Any) -> None:
        document["files"][0]["path"] = f"node=1/{CONTROLS}"

    _changed(run, name_raw)
    main([str(run)])
    (run / MANIFEST).unlink()
    (run / f"{CONTROLS}\udcff").touch()
    main([str(run)])
    evidence_main(["seal", str(run)])
    shown = "".join(capsys.readouterr())
    assert "golden" in shown
    assert not [char for char in shown if not char.isprintable() and char != "\n"]
    assert "\nPASS      all is well" not in shown


@pytest.mark.parametrize("crash", [RuntimeError("odd"), RecursionError(), MemoryError()])
def test_a_crash_of_the_judge_is_not_a_verdict(
    crash: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise crash

    monkeypatch.setattr(judging, "History", fail)
    assert main([str(_run(tmp_path))]) == 3


def test_a_closed_output_is_not_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(judging, "History", fail)
    with pytest.raises(BrokenPipeError):
        main([str(_run(tmp_path))])


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_seal_key_that_is_no_file_is_rejected(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = Path("/dev/zero") if kind == "device" else tmp_path / "key"
    if kind == "pipe":
        os.mkfifo(key, 0o600)
    assert main([str(_run(tmp_path)), "--seal-key", str(key)]) == 4
    assert "is not a regular file" in capsys.readouterr().err
