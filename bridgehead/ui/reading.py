"""Finds the files of a run, and reads their lines: once, or as they are written."""

from __future__ import annotations

import gc
import json
import subprocess
import tempfile
import time
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
_CHUNK_BYTES: Final = 8 << 20
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
    resources: list[TransactionFollower] = field(default_factory=list)
    _known: set[Path] = field(default_factory=set)

    @classmethod
    def of(cls, run: Path) -> RunReader:
        """Return a reader that has read nothing yet. Raises ClusterError."""
        return cls(run, Collector(description(run)["started_ms"]))

    def poll(self) -> None:
        """Read the new complete lines of all files."""
        self._find_files()
        for file in self.files:
            self._read(file)

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
        return len(description(self.run).get("log_folders") or ()) or 1

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

    def _read(self, file: _File) -> None:
        try:
            with file.path.open("rb") as opened:
                opened.seek(file.offset)
                while data := opened.read(_CHUNK_BYTES):
                    complete = data.rpartition(b"\n")[0]
                    if not complete:
                        if len(data) == _CHUNK_BYTES:  # no line of ours is this long
                            file.offset += len(data)
                            self.collector.rows.skipped += 1
                        break
                    self.collector.add_lines(complete, file.number, file.offset, file.stream)
                    file.offset += len(complete) + 1
                    opened.seek(file.offset)
        except OSError:
            return  # It was removed, or is not readable now; the next call tries again.


class TransactionFollower:
    """Decodes the transaction log of a run that is not sealed, in a process of its own.

    The lines have the format of `commits.jsonl`, without secrets.
    """

    def __init__(self, run: Path, *, once: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bridgehead-ui-")
        self.path = Path(self._folder.name) / "commits.jsonl"
        with self.path.open("wb") as output:
            self._process = subprocess.Popen(
                module_command("judge.evidence", "follow", str(run), *(["--once"] if once else [])),
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


def read_run(run: Path) -> RunReader:
    """Read a whole run. Raises ClusterError."""
    reader = RunReader.of(run)
    follower = None
    if not (run / COMMITS).is_file() and description(run).get("log_folders"):
        follower = TransactionFollower(run, once=True)
        reader.commits = follower.path
    # The rows have no cycles; to look for some after every few rows would take half of the time.
    gc.disable()
    try:
        reader.poll()
        reader.collector.release()
        reader.collector.rows.renumber()
    finally:
        gc.enable()
        if follower is not None:
            reader.resources.append(follower)
    return reader
