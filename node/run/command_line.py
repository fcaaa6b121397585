"""Changes the command line that `ps` shows for this process; Linux only."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Positions after the command's name in /proc/PID/stat; see proc(5).
_ARG_START: Final = 45
_ARG_END: Final = 46


def set_command_line(arguments: Sequence[str]) -> None:
    """Show `arguments` as the command line, cut to the length of the original one.

    The last byte of the original is set to a blank. Because it is not zero, Linux shows the text up
    to the first zero byte, and tools split the text at the blanks.
    """
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    if start == 0:  # The system does not tell where the command line is.
        return
    text = " ".join(arguments).encode()[: end - start - 2]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))
    ctypes.memset(end - 1, ord(" "), 1)
