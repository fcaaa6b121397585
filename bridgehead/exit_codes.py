"""The exit codes of every command. The table in docs/commands.md is generated from this module."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """Stable: scripts depend on the numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNDECIDED = 3
    CANNOT_RUN = 4
    INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
    OUTPUT_CLOSED = 141  # 128 + SIGPIPE


MEANINGS: Final = {
    ExitCode.OK: "Success. After `judge` and `pipeline run`: every expected property holds; after "
    "`chaos run`: every run passed.",
    ExitCode.FAILED: "An expected property is violated, a run of `chaos` failed or hung, or a demo "
    "had an unexpected outcome. The commands that correspond to Kafka's tools return 1 also for "
    "wrong usage and other errors; they return 4 if no server is named and no cluster is running.",
    ExitCode.USAGE: "The command line is wrong: an unknown option, a missing or invalid argument.",
    ExitCode.UNDECIDED: "Undecided: the evidence is not sufficient for a verdict. After "
    "`controller show`: there is no active controller.",
    ExitCode.CANNOT_RUN: "The command cannot run: no cluster is running, a port is in use, a file "
    "or a program is missing. The message names the next step. An unexpected error also has this "
    "code.",
    ExitCode.INTERRUPTED: "Ctrl-C.",
    ExitCode.OUTPUT_CLOSED: "The reader of the output has closed it, as `head` does.",
}
