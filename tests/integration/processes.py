"""Which processes still run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def is_running(process: psutil.Process) -> bool:
    """Return whether the process exists and is no zombie."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return every live process with a path under `folder` in its command line."""
    processes = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        is_ours = any(str(folder) in argument for argument in line)
        if is_ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes
