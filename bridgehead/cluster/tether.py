"""Runs a program that dies with its parent: `python -I -S tether.py PARENT_PID COMMAND...`.

Read first: this file replaces itself by COMMAND (same pid) after asking Linux for SIGKILL at the
parent's death; a Java server cannot ask for that itself. Elsewhere than on Linux it just starts
COMMAND, and the next `up` stops what a killed supervisor left behind. Standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ties this process to `arguments[0]`, its parent, and becomes `arguments[1:]`."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before it could be asked about
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - the command is the point


if __name__ == "__main__":
    main(sys.argv[1:])
