"""Runs a program that dies with its parent: `die_with_parent.py PARENT_PID COMMAND...`.

The script asks Linux to send it SIGKILL when the parent dies, because a Java server cannot request
this itself. Then it replaces itself with COMMAND, under the same pid. On other systems it only runs
COMMAND: if the parent is killed, COMMAND keeps running until the next `up` stops it. The script
uses only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent `arguments[0]` and execute `arguments[1:]`."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent died before prctl
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
