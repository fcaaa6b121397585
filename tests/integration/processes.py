"""Which processes still run."""

from __future__ import annotations

import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

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


# Waiting for conditions, with a time limit.

T = TypeVar("T")


def wait_until(
    read: Callable[[], T],
    is_good: Callable[[T], object] = bool,
    *,
    timeout_s: float = 60.0,
) -> T:
    """Poll until `read` returns a good value; return it. Fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not is_good(value := read()):
        assert time.monotonic() < deadline, f"still {value!r} after {timeout_s:g} s"
        time.sleep(0.02)
    return value


# Find the files that give other users a permission, and the files that contain a secret.


def open_to_others(folder: Path) -> list[str]:
    """Return the files and folders in `folder` that give other users any permission."""
    return sorted(
        f"{stat.filemode(path.lstat().st_mode)} {path.relative_to(folder)}"
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    )


def holders(folder: Path, *secrets: bytes) -> set[str]:
    """Return the files in `folder` that contain one of the secrets."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    }


# The stacks of the Java processes that this process started.

_TIMEOUT_S: Final = 60


def java_stacks() -> Iterator[tuple[str, str]]:
    """Yield a title and the stacks of each Java process. If they cannot be read, yield the error.

    This never raises: the caller is a hook of pytest, where an exception would end the session.
    A machine may have no `jstack`, a process may have ended, and a frozen process does not answer.
    """
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() != "java":
                continue
            ran = subprocess.run(
                ["jstack", "-l", str(process.pid)],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            stacks = ran.stdout + ran.stderr
        except (OSError, subprocess.SubprocessError, psutil.Error) as error:
            stacks = f"no stacks: {error!r}"
        yield f"Java process {process.pid}", stacks
