"""Flushes the logs a moment after something was written to them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)
_DELAY_S: Final = 0.05


class LogFlusher:
    """Flushes what no response flushes. While nothing is buffered, no timer wakes the node."""

    def __init__(self, flush: Callable[[], bool]) -> None:
        """Build it in the event loop. `flush` returns whether it has to be called again."""
        self._flush = flush
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = self._has_failed = False

    def flush_soon(self) -> None:
        """Flush after a short delay, together with what is written meanwhile. Any thread calls."""
        if self._is_due:
            return
        self._is_due = True
        if threading.get_ident() == self._thread_id:
            self._start_timer()
        else:
            self._loop.call_soon_threadsafe(self._start_timer)

    def stop(self) -> None:
        """Stop the timer, and start no other."""
        self._is_due = True
        if self._timer is not None:
            self._timer.cancel()

    def _start_timer(self) -> None:
        self._timer = self._loop.call_later(_DELAY_S, self._run)

    def _run(self) -> None:
        self._is_due = False
        try:
            is_due = self._flush()
        except OSError as error:
            if not self._has_failed:
                _log.error("no request is answered, because evidence cannot be written: %s", error)
            self._has_failed = is_due = True
        else:
            if self._has_failed:
                _log.info("evidence is written again")
            self._has_failed = False
        if is_due:
            self.flush_soon()
