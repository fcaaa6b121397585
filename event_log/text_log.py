"""A log file in Kafka's layout: `[time] LEVEL message (logger)`.

Lines are buffered until `flush`. Files roll over by size as with log4j's RollingFileAppender: the
newest is NAME, then NAME.1 and so on. A text log may lose lines: those in the buffer of a killed
process and, unlike the event log, all lines while the disk is full.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)
BUFFER_BYTES_MAX: Final = 64 * 1024
FILE_BYTES_MAX: Final = 32 * 1024 * 1024
FILES_MAX: Final = 5


class Level(IntEnum):
    """The levels of log4j."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    OFF = 100


class TextLog:
    """The file of one logger. Lines below `level` are dropped; OFF opens no file."""

    def __init__(self, path: Path, logger: str, level: Level) -> None:
        """Raises OSError if the folder is not writable."""
        self.level = level
        self._path = path
        self._end = f" ({logger})\n".encode()
        self._lock = threading.RLock()  # Large requests are authorized in a thread.
        # Called when the buffer stops being empty, from any thread.
        self.on_buffered: Callable[[], object] = lambda: None
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        self._second = -1
        self._second_text = ""
        self._file = -1
        self._file_bytes = 0
        if level is not Level.OFF:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file_bytes = os.fstat(self._file).st_size

    def append(self, level: Level, message: bytes, wall_ms: int) -> None:
        """Append one line if its level is enabled. `message` must not contain a line break."""
        if level < self.level:
            return
        with self._lock:
            line = b"[%b] %b %b%b" % (self._time(wall_ms), level.name.encode(), message, self._end)
            if not self._buffer:
                self.on_buffered()
            self._buffer.append(line)
            self._buffered_bytes += len(line)
            if self._buffered_bytes > BUFFER_BYTES_MAX:
                self.flush()

    def _time(self, wall_ms: int) -> bytes:
        """Return the time in log4j's ISO8601 format and local time; formats each second once."""
        second, ms = divmod(wall_ms, 1000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._second_text},{ms:03}".encode()

    def flush(self) -> None:
        """Write the buffered lines to the file."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered_bytes = 0
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            self._file_bytes += len(data)
        except OSError as error:
            _log.error("lost lines of %s: %s", self._path, error)
        if self._file_bytes > FILE_BYTES_MAX:
            self._roll()

    def _roll(self) -> None:
        """Begin a new file. If this fails, the full file stays in use.

        The full file is therefore closed last. Otherwise a socket or the event log might get its
        file descriptor, and lines of this log would be written there.
        """
        full = self._file
        try:
            if self._path.exists():  # False if an earlier call renamed it but opened no new file.
                self._rename_older()
            self._open()
        except OSError as error:
            _log.error("%s cannot be rolled over: %s", self._path, error)
        else:
            os.close(full)

    def _rename_older(self) -> None:
        for number in range(FILES_MAX - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
