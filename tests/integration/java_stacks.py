"""The stacks of the Java processes that this process started."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Final

import psutil

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
