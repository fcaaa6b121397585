"""`python -m pipeline run --evidence DIR --out DIR`: build tables, verdicts and a report.

Exit code: 0 if all runs hold, 1 if a property fails, 3 if the evidence does not suffice, 4 if
Spark or a folder cannot be used.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Shown

from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from event_log.seals import SealError, seal_rules
from event_log.verdicts import VerdictRow

if TYPE_CHECKING:
    from pipeline.evidence import Run

_LINE_EVERY_S: Final = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    if importlib.util.find_spec("pyspark") is None:
        return _fail("PySpark is not installed: install bridgehead's extra `pipeline`.")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pipeline.evidence import EvidenceError, find_runs
    from pipeline.folders import OutputError, copies_folder
    from pipeline.gateway import GatewayError

    try:
        rules = seal_rules(options.seal_key, accept_unsealed=options.unsealed)
        with copies_folder(options.out) as copies:
            runs = find_runs(options.evidence, rules, copies=copies)  # Fails before Spark starts.
            return _run(options, runs, console)
    except EvidenceError as error:
        return _fail(str(error), ExitCode.UNDECIDED)
    except (OutputError, GatewayError, ClusterError, SealError) as error:
        return _fail(str(error))
    except (PySparkException, Py4JError) as error:
        if options.debug:
            raise
        first = str(error).strip().splitlines()[0]
        return _fail(f"Spark failed: {first} (--debug shows the stack trace).")


def _fail(sentence: str, code: ExitCode = ExitCode.CANNOT_RUN) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bridgehead pipeline", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="build tables, verdicts and a report from evidence")
    run.add_argument("--evidence", type=Path, required=True, help="a cluster's folder, or a run's")
    run.add_argument("--out", type=Path, required=True, help="the folder for tables and report")
    run.add_argument("--seal-key", type=Path, help="the key that must have signed the manifests")
    run.add_argument("--unsealed", action="store_true", help="trust runs that are not sealed")
    run.add_argument("--master", default="local[*]", help="Spark's master (default: local[*])")
    run.add_argument("--memory", default="4g", help="of the driver and of executors (default: 4g)")
    run.add_argument(
        "--driver-host",
        default="127.0.0.1",
        metavar="HOST",
        help="this host's name for the workers of a cluster; the driver listens there "
        "(default: 127.0.0.1)",
    )
    run.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a setting of Spark, as for spark-submit; may be repeated",
    )
    run.add_argument("--debug", action="store_true", help="show stack traces of failures")
    return parser


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.NAME=VALUE")
    return name, value


class ProgressLines:
    """Progress for an output that is not a terminal: a line at most every five seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._shown_s = 0.0

    def show(self, name: str, at: int, of: int, elapsed_s: float) -> None:
        """Write that table `name` is built, the one after `at` of `of`, unless it is too early."""
        if elapsed_s - self._shown_s >= _LINE_EVERY_S:
            self._shown_s = elapsed_s
            self.write(f"{name}: {at} of {of} tables after {elapsed_s:.0f} s")

    def write(self, line: str) -> None:
        """Write a line and flush it."""
        self._output.write(f"{line}\n")
        self._output.flush()


def _run(options: argparse.Namespace, runs: Sequence[Run], console: Console) -> int:
    from event_log.verdicts import exit_code, worst
    from pipeline.run import Pipeline
    from pipeline.session import SMALL_BYTES_MAX, open_session

    began = time.monotonic()
    with Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("starting Spark", total=None)
        lines = ProgressLines(sys.stderr)

        def show(name: str, at: int, of: int) -> None:
            progress.update(task, description=name, completed=at, total=of)
            if not console.is_terminal:
                lines.show(name, at, of, time.monotonic() - began)

        if not console.is_terminal:
            lines.write("starting Spark")
        small = sum(f.bytes for run in runs for f in run.manifest.files) < SMALL_BYTES_MAX
        spark = open_session(
            options.master,
            memory=options.memory,
            small=small,
            driver_host=options.driver_host,
            settings=dict(options.conf),
        )
        try:
            pipeline = Pipeline(spark, runs, options.out)
            pipeline.make(progress=show)
            verdicts = pipeline.verdicts()
            pipeline.write_results(verdicts)
        finally:
            spark.stop()
    for run, rows in verdicts.items():
        _show(console, run, rows)
    report = options.out / "report" / "index.html"
    console.print(f"{time.monotonic() - began:.0f} s; the report is {report}", soft_wrap=True)
    return exit_code(*map(worst, verdicts.values()))


def _show(console: Console, run: str, rows: Sequence[VerdictRow]) -> None:
    from event_log.verdicts import worst

    table = Shown("verdict", "property", "judged", "violations", "why", title=f"run {run}")
    for row in rows:
        colour = {"PASS": "green", "NODATA": "dim"}.get(row.verdict, "red")
        verdict = f"[{colour}]{row.verdict}[/]"
        judged = (str(row.judged), str(row.violations))
        table.add_row(verdict, f"{row.property} {row.name}", *judged, row.why)
    console.print(table)
    console.print(f"[bold]{worst(rows)}[/]")


if __name__ == "__main__":
    sys.exit(main())
