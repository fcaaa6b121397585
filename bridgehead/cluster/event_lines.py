"""Events of the harness and of workloads, as lines of JSON in the format of node events.

See docs/events.md. `append` returns once the operating system has the line. Thread-safe.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import threading
import time
from pathlib import Path
from typing import Any, Final

import bridgehead

SCHEMA_VERSION: Final = 1
# Without spaces, as nodes write it: the judge reads such lines faster.
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode


class EventLines:
    """The events of one process: `<source>=<name>/events-<boot>-0000.jsonl` in a run's folder."""

    def __init__(self, run_folder: Path, run_id: str, source: str, name: str) -> None:
        """`source` is `harness` or `client`. `<boot>` is a random id of these events.

        Raises:
            OSError: the folder cannot be written.
        """
        self.boot = secrets.token_hex(6)
        folder = run_folder / f"{source}={name}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"events-{self.boot}-0000.jsonl"
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._common = {
            "run_id": run_id,
            "node": f"{source}-{name}",
            "boot": self.boot,
            "host_boot_id": host_boot_id(),
            "schema_version": SCHEMA_VERSION,
        }
        self._seq = 0
        self._lock = threading.Lock()
        version = bridgehead.__version__
        self.append("started", incarnation=self.boot, version=version, pid=os.getpid())

    def append(self, kind: str, **fields: Any) -> None:
        """Add one event; ignored after `close`.

        Raises:
            OSError: for example, the disk is full; nothing is added.
        """
        with self._lock:
            if self._file is None:
                return
            event = {
                "kind": kind,
                "seq": self._seq,
                "mono_ns": time.monotonic_ns(),
                "wall_ms": time.time_ns() // 1_000_000,
                **self._common,
                **fields,
            }
            _write_line(self._file, _ENCODE(event).encode() + b"\n")
            self._seq += 1

    def close(self, reason: str | None) -> None:
        """Append `stopped`, unless `reason` is None, and close. May be called twice.

        Raises:
            OSError: `stopped` cannot be added; the file is closed.
        """
        try:
            if reason is not None:
                self.append("stopped", reason=reason)
        finally:
            with self._lock:
                if self._file is not None:
                    os.close(self._file)
                    self._file = None


def _write_line(file: int, line: bytes) -> None:
    """Append the whole line or nothing: the next line must not begin after a part of this one."""
    written = os.write(file, line)
    if written < len(line):
        os.ftruncate(file, os.fstat(file).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def software_versions() -> dict[str, str]:
    """Return the versions that a run's description has."""
    return {
        "bridgehead": bridgehead.__version__,
        "python": platform.python_version(),
        "events": str(SCHEMA_VERSION),
    }


def host_boot_id() -> str:
    """Return an id of the host's boot. Events with the same id share a monotonic clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()[:8]
    except OSError:
        return "unknown"
