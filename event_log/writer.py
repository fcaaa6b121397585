"""Appends events as lines of JSON. Nothing is lost but what a killed process had not handed over.

Lines are buffered until `flush`, which hands them to the operating system in one write; whoever
answers a client flushes first, so that no answer exists without its evidence. There is no fsync:
a power cut is not among the faults that are judged.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

import orjson

from event_log.clock import Clock
from event_log.events import SCHEMA_VERSION, Event

BUFFER_BYTES_MAX: Final = 64 * 1024
SEGMENT_BYTES_MAX: Final = 64 * 1024 * 1024


class EventLog(Protocol):
    """Where events go."""

    def append(self, event: Event) -> None: ...
    def flush(self) -> None: ...


class NullEventLog:
    """Forgets everything: for tests that are not about evidence."""

    def append(self, event: Event) -> None:
        """See EventLog."""

    def flush(self) -> None:
        """See EventLog."""


class FileEventLog:
    """One boot of one node, in segments `events-<boot>-<number>.jsonl`.

    Raises:
        OSError: the folder cannot be written; a node without evidence does not start.
    """

    def __init__(
        self, directory: Path, *, run_id: str, node: str, boot: str, host_boot_id: str, clock: Clock
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._boot = boot
        self._clock = clock
        self._sequence = 0
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        self._segment_bytes = 0
        self._segment = 0
        common = {
            "run_id": run_id,
            "node": node,
            "boot": boot,
            "host_boot_id": host_boot_id,
            "schema_version": SCHEMA_VERSION,
        }
        self._common = orjson.dumps(common)[1:-1]
        self._file = self._open_segment()

    def _open_segment(self) -> int:
        path = self._directory / f"events-{self._boot}-{self._segment:04}.jsonl"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)

    def append(self, event: Event) -> None:
        """Add one event; see `flush`."""
        # What all lines share is encoded once. A named tuple is a tuple to us, not to orjson.
        data = b'{"kind":"%b","seq":%d,"mono_ns":%d,"wall_ms":%d,%b,%b\n' % (
            event.kind.encode(),
            self._sequence,
            self._clock.mono_ns(),
            self._clock.wall_ms(),
            self._common,
            orjson.dumps(event, default=tuple)[1:],
        )
        self._sequence += 1
        self._buffer.append(data)
        self._buffered_bytes += len(data)
        if self._buffered_bytes > BUFFER_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Hand all lines to the operating system."""
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered_bytes = 0
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self._segment_bytes += len(data)
        if self._segment_bytes > SEGMENT_BYTES_MAX:
            os.close(self._file)
            self._segment += 1
            self._segment_bytes = 0
            self._file = self._open_segment()

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        os.close(self._file)
