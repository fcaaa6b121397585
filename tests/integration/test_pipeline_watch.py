"""`pipeline watch` counts every line of a growing run once, even if it is killed and restarted.

Each test compares the figures after several batches with a count of the same lines in plain Python.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from bench.generated_evidence.__main__ import generate
from event_log.evidence import EVENT_SOURCES
from pipeline.session import RAW_FILES, open_session
from pipeline.watch.increments import Increments
from pipeline.watch.stream import Stream
from pipeline.watch.summary import Summary
from tests.integration.processes import is_running, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

EVENTS = 3_000


class KilledError(Exception):
    """Raised where a process would be killed."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests."""
    session = open_session("local[2]", small=True, memory="1g", settings=RAW_FILES)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Segments of a generated run. The last responses are missing, so some requests are open."""
    folder = tmp_path_factory.mktemp("watched")
    generate(folder, EVENTS)
    run = folder / "run=generated"
    contents = {}
    for source in EVENT_SOURCES:
        for path in sorted(run.glob(f"{source}=*/events-*.jsonl")):
            lines = path.read_bytes().splitlines(keepends=True)
            cut = len(lines) - len(lines) // 10
            kept = [line for line in lines[cut:] if not _ends_a_request(json.loads(line))]
            contents[path.relative_to(run).as_posix()] = b"".join([*lines[:cut], *kept])
    return contents


def _ends_a_request(event: dict[str, Any]) -> bool:
    return event["kind"] in ("responded", "disconnected", "stopped", "node_ended")


class Run:
    """A run that grows."""

    def __init__(self, folder: Path, segments: dict[str, bytes]) -> None:
        self.folder = folder / "run=grows"
        self._segments = segments

    def grow_to(self, share: float) -> None:
        """Extend each segment to this share of its bytes. Most shares end within a line."""
        for name, data in self._segments.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as opened:
                opened.write(data[opened.tell() : int(len(data) * share)])

    def counted(self) -> dict[str, Any]:
        """Count the lines of all segments at their full length, without Spark."""
        boots: dict[str, Counter[str]] = {}
        received: dict[str, dict[str, Any]] = {}
        total_us = []
        for data in self._segments.values():
            for line in data.splitlines():
                event = json.loads(line)
                kind = event["kind"]
                count = boots.setdefault(f"{event['node']}/{event['boot']}", Counter())
                count["lines"] += 1
                if kind == "request_received":
                    count["received"] += 1
                    received[event["request_id"]] = event
        for data in self._segments.values():
            for line in data.splitlines():
                event = json.loads(line)
                if event["kind"] != "responded":
                    continue
                boots[f"{event['node']}/{event['boot']}"]["responded"] += 1
                of = received.pop(event["request_id"])
                if of["route"] == "FORWARD":
                    total_us.append((event["mono_ns"] - of["mono_ns"]) // 1000)
        return {
            "boots": {name: dict(+count) for name, count in sorted(boots.items())},
            "open": dict(sorted(Counter(entry["node"] for entry in received.values()).items())),
            "total": (len(total_us), max(total_us)),
        }


def figures(summary: Summary) -> dict[str, Any]:
    """The figures of a watch, in the form of `Run.counted`."""
    total = next(hop for hop in summary.latency if hop.hop == "total")
    return {
        "boots": {
            f"{boot.node}/{boot.boot}": {
                name: count
                for name, count in asdict(boot).items()
                if name in ("lines", "received", "responded") and count
            }
            for boot in summary.boots
        },
        "open": {
            waiting.node: waiting.requests for waiting in sorted(summary.open, key=lambda o: o.node)
        },
        "total": (total.requests, total.max_us),
    }


def without_batch(summary: Summary) -> dict[str, Any]:
    return {**asdict(summary), "batch": None, "open": sorted(map(str, summary.open))}


def test_figures_equal_a_count_of_the_same_lines(
    spark: SparkSession, segments: dict[str, bytes], tmp_path: Path
) -> None:
    run = Run(tmp_path, segments)
    stream = Stream(spark, run.folder, tmp_path / "watch")
    assert stream.advance().batch == -1, "a batch was made without a line"
    for share in (0.3, 0.31, 1.0):
        run.grow_to(share)
        summary = stream.advance()
    assert (summary.batch, summary.late) == (2, 0)
    assert stream.advance().batch == 2, "a batch was made without a new line"
    assert figures(summary) == run.counted()
    assert sum(waiting.requests for waiting in summary.open) > 0
    at_once = Stream(spark, run.folder, tmp_path / "again").advance()
    assert without_batch(at_once) == without_batch(summary)


def killed(name: str, *, after: bool = False) -> Any:
    """Return a class, a method's name, and the method's replacement, which raises KilledError.

    With `after`, the replacement does the work of the method first.
    """
    owner = Stream if hasattr(Stream, name) else Increments
    original = getattr(owner, name)

    def method(*arguments: Any) -> Any:
        if after:
            original(*arguments)
        raise KilledError(name)

    return owner, name, method


KILLS = {
    "while lines are copied": killed("_store"),
    "before the state is computed": killed("_add"),
    "before the state is published": killed("_publish"),
    "before Spark notes the end of the batch": killed("_publish", after=True),
    "before the copied lines are deleted": killed("drop_copied"),
}


def interrupted(spark: SparkSession, run: Run, folder: Path, moments: Iterable[str]) -> Summary:
    """Watch a run several times. Each watch is killed, except the first and the last."""
    run.grow_to(0.1)
    Stream(spark, run.folder, folder).advance()
    for at, moment in enumerate(moments, start=2):
        run.grow_to(at / 10)
        owner, name, method = KILLS[moment]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, method)
            with pytest.raises((KilledError, StreamingQueryException)):
                Stream(spark, run.folder, folder).advance()
    run.grow_to(1.0)
    return Stream(spark, run.folder, folder).advance()


def test_a_killed_watch_loses_and_doubles_nothing(
    spark: SparkSession, segments: dict[str, bytes], tmp_path: Path
) -> None:
    run = Run(tmp_path, segments)
    assert figures(interrupted(spark, run, tmp_path / "watch", KILLS)) == run.counted()


def _forgets_offsets(increments: Increments, number: int, _: dict[str, int]) -> None:
    increments._record.write_text(json.dumps({"number": number, "offsets": {}}), encoding="utf-8")


def _last_state_of_any_batch(stream: Stream, batches: list[int]) -> Summary:
    return SUMMARY(stream, stream._batches()[-1:])


SUMMARY = Stream._summary
# Each bug, with the moments of the kills that reveal it; the first bug needs no kill.
BUGS = {
    "offsets are not stored": (Increments, "_store", _forgets_offsets, ()),
    "a repeated batch adds to its own state": (
        *(Stream, "_summary", _last_state_of_any_batch),
        ("before Spark notes the end of the batch",),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_comparison_finds_bugs(
    bug: str,
    spark: SparkSession,
    segments: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, name, method, moments = BUGS[bug]
    monkeypatch.setattr(owner, name, method)
    run = Run(tmp_path, segments)
    assert figures(interrupted(spark, run, tmp_path / "watch", moments)) != run.counted()


def test_a_watch_killed_with_sigkill_continues(
    spark: SparkSession, segments: dict[str, bytes], tmp_path: Path
) -> None:
    run = Run(tmp_path, segments)
    run.grow_to(0.3)
    (run.folder / "run.json").write_text('{"run_id": "grows"}', encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pipeline", "watch", "--evidence", str(run.folder)),
        *("--out", str(tmp_path), "--json", "--every", "0"),
    ]
    watch = tmp_path / "watch/run=grows"
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert (first["schema_version"], first["batch"], first["approximate"]) == (1, 0, False)
        run.grow_to(0.6)
        offsets = watch / "offsets.json"
        wait_until(lambda: json.loads(offsets.read_text(encoding="utf-8"))["number"] == 2)
        java = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)  # while Spark computes the second batch
    # Java ends when it notices that Python has ended and its tasks are interrupted. Until then it
    # writes to the checkpoint. On a busy machine this takes longer than a minute.
    wait_until(lambda: not any(map(is_running, java)), timeout_s=180)
    run.grow_to(1.0)
    assert figures(Stream(spark, run.folder, watch).advance()) == run.counted()
