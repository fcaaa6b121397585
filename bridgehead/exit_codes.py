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
    ExitCode.OK: "Success. For `judge` and `pipeline run`: every expected property holds. For "
    "`chaos run`: every run passed. For `rehearse scan`: nothing stops the migration or is lost.",
    ExitCode.FAILED: "An expected property is violated, a run of `chaos` failed or hung, `rehearse "
    "scan` found what stops a migration or gets lost in it, or a demo had an unexpected outcome. "
    "The commands that correspond to Kafka's tools also return 1 for wrong usage and other errors. "
    "If no server is named and no cluster is running, they return 4.",
    ExitCode.USAGE: "The command line is wrong: an unknown option, a missing or invalid argument.",
    ExitCode.UNDECIDED: "Undecided: the evidence is not sufficient for a verdict. For `controller "
    "show`: there is no active controller.",
    ExitCode.CANNOT_RUN: "The command cannot run, for example because no cluster is running, a "
    "port is in use, or a file or program is missing. The message names the next step. An "
    "unexpected error also has this code.",
    ExitCode.INTERRUPTED: "Ctrl-C.",
    ExitCode.OUTPUT_CLOSED: "The program that reads the output closed it, as `head` does.",
}
