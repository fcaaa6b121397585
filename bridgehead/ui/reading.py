"""Finds the files of a run, and reads their lines: once, or as they are written."""

from __future__ import annotations

import gc
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.ui.rows import Collector

COMMITS: Final = "zookeeper/commits.jsonl"
_CATCH_UP_S: Final = 30.0
_POLL_S: Final = 0.05
_TAIL_BYTES: Final = 1 << 20
_DESCRIPTIONS: Final = ("run.json", "manifest.json")
_CHUNK_BYTES: Final = 8 << 20  # no line of ours is as long
_STEP_BYTES: Final = 1 << 20
_RELEASED_AFTER_BYTES: Final = 16 << 20
_MARGIN_MS: Final = 1000.0  # of ZooKeeper's clock, and of events that are written later
# The harness first: its clocks are never moved by a fault.
_SOURCES: Final = ("harness", "client", "node")


def find_run(folder: Path) -> Path:
    """Return the last run of a cluster's folder; or the folder itself if it is a run.

    Raises:
        ClusterError: the folder has no run.
    """
    if not folder.is_dir():
        raise ClusterError(f"{folder} is not a folder: name a cluster's data directory or a run.")
    if any((folder / name).is_file() for name in _DESCRIPTIONS):
        return folder
    runs = {
        path.parent
        for pattern in ("evidence/run=*", "run=*")
        for name in _DESCRIPTIONS
        for path in folder.glob(f"{pattern}/{name}")
    }
    if not runs:
        raise ClusterError(
            f"{folder} has no run: name the data directory of a cluster, or a run=… folder."
        )
    return max(runs, key=lambda run: (description(run)["started_ms"], run))


def description(run: Path) -> dict[str, Any]:
    """Return a run's description, from run.json, or from the manifest of a copied run.

    Raises:
        ClusterError: the file cannot be read.
    """
    paths = [run / name for name in _DESCRIPTIONS]
    path = next((path for path in paths if path.is_file()), paths[0])
    try:
        document = json.loads(path.read_bytes())
        document = document.get("run", document)
        return {**document, "started_ms": float(document["started_ms"])}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ClusterError(f"{path} does not describe a run: {error}.") from None


@dataclass(slots=True)
class _File:
    path: Path
    number: int
    stream: str
    offset: int = 0  # of the first byte that was not read


@dataclass(slots=True)
class RunReader:
    """Reads a run into a collector. `poll` reads what was added since the last call."""

    run: Path
    collector: Collector
    files: list[_File] = field(default_factory=list)
    commits: Path | None = None  # decoded transactions of a run that is not sealed
    log_folders: Sequence[str] = ()  # of ZooKeeper's members; by default run.json has them
    resources: list[TransactionFollower] = field(default_factory=list)
    znodes: dict[str, Any] | None = None  # before the first row; None: no row was dropped
    _known: set[Path] = field(default_factory=set)

    @classmethod
    def of(cls, run: Path) -> RunReader:
        """Return a reader that has read nothing yet. Raises ClusterError."""
        return cls(run, Collector(description(run)["started_ms"]))

    def poll(self) -> None:
        """Read the new complete lines of all files."""
        self._find_files()
        for file in self.files:
            while self._read(file, _CHUNK_BYTES):
                pass

    def read_in_steps(
        self, step_bytes: int = _STEP_BYTES, *, ended: bool = True
    ) -> Iterator[float]:
        """Read a run; yield the share that was read each time rows are released.

        The order of the rows is that of a run that is read at once: rows are released once every
        process was read up to their time and a margin. The rows of several hosts, whose clocks may
        differ by more, are released at the end. The last rows of a run that has not `ended` are not
        released: `poll` continues.
        """
        self._find_files()
        total = sum(f.path.stat().st_size for f in self.files if f.path.is_file()) or 1
        streams: dict[str, list[_File]] = {}
        for file in self.files:
            streams.setdefault(file.stream, []).append(file)
        collector, released_at = self.collector, 0
        while streams:
            stream = min(streams, key=collector.last_ms)
            if not self._read(streams[stream][0], step_bytes):
                del streams[stream][0]
                if not streams[stream]:
                    del streams[stream]
            done = sum(file.offset for file in self.files)
            until_ms = min((collector.last_ms(other) for other in streams), default=math.inf)
            if not collector.has_one_clock or until_ms == -math.inf or not streams:
                continue
            if not len(collector.rows) or done - released_at >= _RELEASED_AFTER_BYTES:
                released_at = done
                collector.release(until_ms - _MARGIN_MS)
                yield done / total
        if ended:
            collector.release()
        yield 1.0

    def line(self, position: int) -> bytes:
        """Return the line of a row; b"" if the file is gone."""
        rows = self.collector.rows
        file = self.files[rows.value("file", position)]
        try:
            with file.path.open("rb") as opened:
                opened.seek(rows.value("offset", position))
                data: bytes = opened.read(rows.value("length", position))
        except OSError:
            return b""
        return data

    @property
    def has_transactions(self) -> bool:
        """Whether ZooKeeper's transactions are known."""
        return any(file.stream == COMMITS for file in self.files)

    @property
    def zookeeper_members(self) -> int:
        """The number of ZooKeeper servers; 1 if it is not known."""
        return len(self.log_folders or description(self.run).get("log_folders") or ()) or 1

    def decode_transactions(self, *, once: bool) -> None:
        """Start to decode ZooKeeper's logs, if they are known and the run is not sealed."""
        if (self.run / COMMITS).is_file():
            return
        if self.log_folders or description(self.run).get("log_folders"):
            follower = TransactionFollower(self.run, self.log_folders, once=once)
            self.resources.append(follower)
            if not follower.has_failed:
                self.commits = follower.path

    def close(self) -> None:
        """Remove the files that the reader made."""
        for resource in self.resources:
            resource.close()

    def _find_files(self) -> None:
        sources = [
            (path, path.name.rpartition("-")[0])
            for source in _SOURCES
            for path in sorted(self.run.glob(f"{source}=*/events-*.jsonl"))
        ]
        commits = self.run / COMMITS
        transactions = commits if commits.is_file() else self.commits
        if transactions is not None and COMMITS not in {file.stream for file in self.files}:
            sources.append((transactions, COMMITS))
        for path, stream in sources:
            if path not in self._known:
                self._known.add(path)
                self.files.append(_File(path, len(self.files), stream))
                self.collector.add_stream(stream)

    def _read(self, file: _File, size: int) -> bool:
        """Read complete lines of at most `size` bytes; return whether there may be more."""
        try:
            with file.path.open("rb") as opened:
                opened.seek(file.offset)
                data = opened.read(size)
        except OSError:
            return False  # It was removed, or is not readable now; the next call tries again.
        complete, newline, _ = data.rpartition(b"\n")
        if newline:
            self.collector.add_lines(complete, file.number, file.offset, file.stream)
            file.offset += len(complete) + 1
        elif len(data) == size < _CHUNK_BYTES:
            return self._read(file, _CHUNK_BYTES)
        elif len(data) == size:
            file.offset += size
            self.collector.rows.skipped += 1
        return len(data) == size


class TransactionFollower:
    """Decodes the transaction log of a run that is not sealed, in a process of its own.

    The lines have the format of `commits.jsonl`, without secrets.
    """

    def __init__(self, run: Path, log_folders: Sequence[str] = (), *, once: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bridgehead-ui-")
        self.path = Path(self._folder.name) / "commits.jsonl"
        options = [f"--zookeeper-logs={folder}" for folder in log_folders]
        options += ["--once"] if once else []
        with self.path.open("wb") as output:
            self._process = subprocess.Popen(
                module_command("judge.evidence", "follow", str(run), *options),
                env=module_environment(),
                stdin=subprocess.PIPE,  # It ends when this process ends.
                stdout=output,
                stderr=subprocess.DEVNULL,
            )
        if once:
            self._process.wait()
        deadline = time.monotonic() + _CATCH_UP_S
        while not self._has_caught_up() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    @property
    def has_failed(self) -> bool:
        """Whether the logs cannot be decoded: then no transaction is known."""
        return self._process.poll() not in (None, 0)

    def _has_caught_up(self) -> bool:
        """Return whether the file has the transactions from before this process started."""
        if self._process.poll() is not None:
            return True
        with self.path.open("rb") as lines:
            lines.seek(max(self.path.stat().st_size - _TAIL_BYTES, 0))
            end = lines.read()
        return end == b"\n" or b"\n\n" in end

    def close(self) -> None:
        """End the process and remove its file."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._folder.cleanup()


def recorded_run(run: Path) -> RunReader:
    """Return a reader of a run that has ended. Raises ClusterError."""
    reader = RunReader.of(run)
    reader.decode_transactions(once=True)
    return reader


def read_run(run: Path) -> RunReader:
    """Read a whole run that has ended. Raises ClusterError."""
    reader = recorded_run(run)
    with no_collection_of_garbage():
        for _ in reader.read_in_steps():
            pass
    return reader


@contextmanager
def no_collection_of_garbage() -> Iterator[None]:
    """Rows have no cycles; to look for some after every few rows would take half of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
