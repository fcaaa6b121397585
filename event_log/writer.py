"""Appends events as lines of JSON.

Lines are buffered until `flush` writes them to the file. A broker flushes before it sends a
response, so no response exists without its evidence; only a killed process loses its buffer. There
is no fsync: power failures are not tested.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol, cast

import orjson

from event_log.clock import Clock
from event_log.events import SCHEMA_VERSION, Connected, Event, RequestReceived

BUFFER_BYTES_MAX: Final = 64 * 1024
# While the disk is full, a full buffer accepts no events of new work. Up to this size it accepts
# events of work in progress, so that each received request is also recorded as answered or
# disconnected.
RESERVE_BYTES_MAX: Final = 1024 * 1024
_NEW_WORK: Final = (Connected, RequestReceived)
SEGMENT_BYTES_MAX: Final = 64 * 1024 * 1024


class EventLog(Protocol):
    """A destination for events."""

    def append(self, event: Event) -> None: ...
    def flush(self) -> None: ...


class NullEventLog:
    """Discards all events: for tests that need no evidence."""

    def append(self, event: Event) -> None:
        """See EventLog."""

    def flush(self) -> None:
        """See EventLog."""


def _encode(event: Event) -> bytes:
    try:
        return orjson.dumps(event, default=tuple)  # orjson itself does not encode named tuples
    except TypeError:  # a lone surrogate
        return orjson.dumps(_escape(asdict(cast(Any, event))))


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escape(name): _escape(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_escape(item) for item in value]
    return value


class FileEventLog:
    """The events of one boot of a node, in segments `events-<boot>-<number>.jsonl`.

    Raises:
        OSError: the folder is not writable; a node does not start without evidence.
    """

    def __init__(
        self, directory: Path, *, run_id: str, node: str, boot: str, host_boot_id: str, clock: Clock
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._boot = boot
        self._clock = clock
        # Called when the buffer stops being empty.
        self.on_buffered: Callable[[], object] = lambda: None
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
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self, event: Event) -> None:
        """Add one event.

        Raises:
            OSError: the buffer is full and cannot be written; the event is not added.
        """
        if self._buffered_bytes > BUFFER_BYTES_MAX:
            self._make_room(event)
        # The common fields are encoded once.
        data = b'{"kind":"%b","seq":%d,"mono_ns":%d,"wall_ms":%d,%b,%b\n' % (
            event.kind.encode(),
            self._sequence,
            self._clock.mono_ns(),
            self._clock.wall_ms(),
            self._common,
            _encode(event)[1:],
        )
        self._sequence += 1
        if not self._buffer:
            self.on_buffered()
        self._buffer.append(data)
        self._buffered_bytes += len(data)

    def _make_room(self, event: Event) -> None:
        try:
            self.flush()
        except OSError:
            if isinstance(event, _NEW_WORK) or self._buffered_bytes > RESERVE_BYTES_MAX:
                raise

    def flush(self) -> None:
        """Write the buffered lines to the file.

        Raises:
            OSError: for example, the disk is full; the next call continues where this one ended.
        """
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        finally:
            self._buffer = [data[written:]] if written < len(data) else []
            self._buffered_bytes = len(data) - written
            self._segment_bytes += written
        if self._segment_bytes > SEGMENT_BYTES_MAX:
            # If the next segment cannot be opened, this one stays in use.
            self._segment += 1
            opened = self._open_segment()
            os.close(self._file)
            self._file = opened
            self._segment_bytes = 0

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        os.close(self._file)
