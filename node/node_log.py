"""node.log: rotates by size, and does not repeat a line without end.

Clients and a broken environment can cause the same line as often as they like. Of each line, the
log has the first `LINES_MAX` in a period. After these it has only the line whose number is a power
of two, with that number.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 32 * 1024 * 1024
FILES_MAX: Final = 5  # beside the newest one
LINES_MAX: Final = 100
PERIOD_S: Final = 60.0
_KINDS_MAX: Final = 1_000  # kinds of lines that are counted at the same time
_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


class NoRepetition(logging.Filter):
    """Drops repetitions of a line. Two lines are the same if only their arguments differ."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__()
        self._now_s = now_s
        # The number of lines of each kind, and when its period began.
        self._counts: OrderedDict[tuple[str, int, str], tuple[int, float]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line."""
        kind, now_s = (record.name, record.levelno, str(record.msg)), self._now_s()
        count, began_s = self._counts.pop(kind, (0, now_s))
        if now_s - began_s >= PERIOD_S:
            count, began_s = 0, now_s
        count += 1
        self._counts[kind] = count, began_s
        if len(self._counts) > _KINDS_MAX:
            self._counts.popitem(last=False)
        if count <= LINES_MAX:
            return True
        if count & (count - 1):
            return False
        text = record.getMessage()
        record.msg = f"{text} [number {count} of such lines in {now_s - began_s:.0f} s]"
        record.args = ()
        return True


def start_log(file: Path | None, now_s: Callable[[], float]) -> None:
    """Write the log to a file, or to standard error."""
    handler: logging.Handler = logging.StreamHandler()
    if file is not None:
        handler = RotatingFileHandler(file, maxBytes=FILE_BYTES_MAX, backupCount=FILES_MAX)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(NoRepetition(now_s))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
