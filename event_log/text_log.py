"""A log in Kafka's own layout: `[time] LEVEL message (logger)`, for people and Kafka's tools.

Lines are buffered until `flush`, and rolled over by size as log4j's RollingFileAppender does: the
newest is NAME, then NAME.1 and so on. Nobody's promise rests on it, unlike on the event log: what
a killed process had not handed over is lost, and a full disk costs lines, not service.
"""

from __future__ import annotations

import logging
import os
import time
from enum import IntEnum
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)
BUFFER_BYTES_MAX: Final = 64 * 1024
FILE_BYTES_MAX: Final = 32 * 1024 * 1024
FILES_MAX: Final = 5


class Level(IntEnum):
    """log4j's levels, the more talkative the lower."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    OFF = 100


class TextLog:
    """One file of one logger. `level`: below it nothing is written; OFF opens no file."""

    def __init__(self, path: Path, logger: str, level: Level) -> None:
        """Raises OSError: the folder cannot be written."""
        self.level = level
        self._path = path
        self._end = f" ({logger})\n".encode()
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
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._file_bytes = os.fstat(self._file).st_size

    def append(self, level: Level, message: bytes, wall_ms: int) -> None:
        """Add one line, unless its level is not asked for. `message` holds no line end."""
        if level < self.level:
            return
        line = b"[%b] %b %b%b" % (self._time(wall_ms), level.name.encode(), message, self._end)
        self._buffer.append(line)
        self._buffered_bytes += len(line)
        if self._buffered_bytes > BUFFER_BYTES_MAX:
            self.flush()

    def _time(self, wall_ms: int) -> bytes:
        """Return log4j's ISO8601 in the machine's time zone; a second's text is made once."""
        second, ms = divmod(wall_ms, 1000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._second_text},{ms:03}".encode()

    def flush(self) -> None:
        """Hand all lines to the operating system."""
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
            if self._file_bytes > FILE_BYTES_MAX:
                self._roll()
        except OSError as wrong:
            _log.error("lines of %s are lost: %s", self._path, wrong)

    def _roll(self) -> None:
        os.close(self._file)
        for number in range(FILES_MAX - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._open()

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
