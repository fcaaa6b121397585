"""Compares what our commands print about a live Kafka 3.9.1 with what Kafka's tools print.

    python -m tests.fidelity.compare_tools [NAME ...]     such as topics; default: every session

The outputs of Kafka's tools are recordings. Exit codes: 0 if there are no unknown differences, 1 if
there are (they are printed), 2 if Kafka is not available.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from bridgehead.cli.commands import build_app
from tests.fidelity.real_kafka import reason_to_skip
from tests.fidelity.record_tools import (
    KAFKA_UNAVAILABLE,
    MAIN_CLASSES,
    arguments_of,
    recorded_kafka,
)
from tests.fidelity.tool_differences import as_ours, without_hint
from tests.fidelity.tool_recordings import FOLDER, HMAC, Output, load_session, mask, sorted_blocks

# A real Kafka deletes topics, moves replicas and updates its brokers after the response. Commands
# that read, and commands that failed, are therefore repeated until the output is as recorded. On
# our brokers, only the moves of replicas continue after the command has ended.
_READS: Final = {"--describe", "--list", "--verify"}
_MOVES: Final = "reassign-partitions"
_CHANGES_S: Final = 10.0
_POLL_S: Final = 0.2


def differences(
    name: str, servers: str, sasl_servers: str, folder: Path, *, on_kafka: bool = False
) -> list[str]:
    """Run a session with our commands; return its steps that differ from the recording.

    `folder`: for the files of the session. `on_kafka`: the servers are brokers of a real Kafka.
    """
    hmac = "HMAC"
    names = {servers: "SERVERS", sasl_servers: "SERVERS", f"{folder}/": ""}
    lines, repeats = [], on_kafka or name == _MOVES
    for step in load_session(FOLDER / f"{name}.txt"):
        words = arguments_of(step, servers, sasl_servers, hmac, folder)
        kafkas, _ = as_ours(step.output, on_kafka=on_kafka)
        ours, stdout = _printed(words, names)
        deadline = time.monotonic() + _CHANGES_S
        while repeats and ours != kafkas and time.monotonic() < deadline:
            if not _READS & set(words) and not ours.status > kafkas.status:
                break  # A command that has changed something must not run again.
            time.sleep(_POLL_S)
            ours, stdout = _printed(words, names)
        token = HMAC.search(stdout)
        hmac = token[0] if hmac == "HMAC" and token else hmac
        if ours != kafkas:
            lines += [f"$ {step.command}", *(f"- {line}" for line in kafkas.lines())]
            lines += [f"+ {line}" for line in ours.lines()]
    return lines


def _printed(words: list[str], names: Mapping[str, str]) -> tuple[Output, str]:
    """Return what our command prints, masked, and its plain standard output."""
    done = CliRunner().invoke(build_app(), words, prog_name="bridgehead")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    stdout, stderr = mask(done.stdout, names), mask(done.stderr, names)
    return Output(sorted_blocks(stdout), without_hint(stderr), done.exit_code), done.stdout


def main() -> int:
    """Run the command; return its exit code."""
    reason = reason_to_skip()
    if reason is not None:
        sys.stderr.write(f"Kafka is not available: {reason}. `make kafka-jars` downloads Kafka.\n")
        return KAFKA_UNAVAILABLE
    differ = False
    with recorded_kafka() as (servers, sasl_servers):
        for name in sys.argv[1:] or MAIN_CLASSES:
            with tempfile.TemporaryDirectory(prefix="tools-") as folder:
                lines = differences(name, servers, sasl_servers, Path(folder), on_kafka=True)
            sys.stdout.writelines(f"{line}\n" for line in lines)
            sys.stdout.write(f"{name}: {'differs' if lines else 'equal'}\n")
            sys.stdout.flush()
            differ |= bool(lines)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
