"""`python -m pipeline run --evidence DIR --out DIR`: build tables, verdicts and a report.

`python -m pipeline watch --evidence DIR --out DIR` shows a run while its nodes write it.
`python -m pipeline trends DIR...` writes a page about the runs in many output folders.

Exit code: 0 if all runs get PASS, 1 if one of them gets FAIL or HANG, 3 if the evidence does not
suffice, 4 if Spark, a folder or the seal key cannot be used.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table as Shown

from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from judge.evidence.kafka_logs import HEALTHY_KAFKA, RUN_ID
from judge.seals import SealError, seal_rules
from judge.terminal import complain_of_crash, printable
from judge.verdicts import VerdictRow, worst

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.evidence import Run
    from pipeline.run import BuiltTable

_LINE_EVERY_S: Final = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    if importlib.util.find_spec("pyspark") is None:
        return _fail("PySpark is not installed: install bridgehead's extra `pipeline`.")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pipeline.evidence import PipelineEvidenceError, find_runs, is_small
    from pipeline.folders import OutputError, copies_folder
    from pipeline.gateway import GatewayError
    from pipeline.places import local_path, place
    from pipeline.report.trends import write_trends
    from pipeline.watch.command import watch
    from pipeline.watch.stream import WatchError

    try:
        if options.command == "watch":
            watch(options, console)
            return ExitCode.OK
        if options.command == "trends":
            count = write_trends(options.folders, options.page)
            console.print(f"runs: {count}; the page is {options.page}", soft_wrap=True)
            return ExitCode.OK
        rules = seal_rules(options.seal_key, accept_unsealed=options.unsealed)
        evidence = local_path(options.evidence)
        with copies_folder(evidence and local_path(options.out)) as copies:
            if evidence is not None:
                # Wrong evidence is rejected before Spark starts.
                runs = find_runs(evidence, rules, copies=copies)
                return _run(options, lambda _: runs, console, small=is_small(runs))
            return _run(
                options, lambda spark: find_runs(place(options.evidence, spark), rules), console
            )
    except PipelineEvidenceError as error:
        return _fail(str(error), ExitCode.UNDECIDED)
    except (OutputError, GatewayError, ClusterError, SealError, WatchError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        if options.command != "watch":
            raise
        return ExitCode.INTERRUPTED
    except (PySparkException, Py4JError) as error:
        if options.debug:
            raise
        first = str(error).strip().splitlines()[0]
        return _fail(f"Spark failed: {first} (--debug shows the stack trace).")
    except BrokenPipeError:  # The output is closed; the caller handles it.
        raise
    except Exception as crash:  # Python's own exit code would be 1: a property is violated.
        if getattr(options, "debug", False):
            raise
        complain_of_crash(crash)
        return ExitCode.CANNOT_RUN


def _fail(sentence: str, code: ExitCode = ExitCode.CANNOT_RUN) -> int:
    sys.stderr.write(f"{printable(sentence)}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bridgehead pipeline", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run(commands.add_parser("run", help="build tables, verdicts and a report from evidence"))
    _add_watch(commands.add_parser("watch", help="show rates and latencies of a running cluster"))
    trends = commands.add_parser("trends", help="compare the figures of many runs on one page")
    trends.add_argument("folders", nargs="+", type=Path, help="folders that `run --out` wrote")
    trends.add_argument("--page", type=Path, default=Path("trends.html"), help="the file to write")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--evidence", required=True, help="the folder of a cluster or of one run, as a path or URI"
    )
    run.add_argument(
        "--out", required=True, help="the folder for tables and report, as a path or URI"
    )
    run.add_argument("--seal-key", type=Path, help="the key that must have signed the manifests")
    run.add_argument("--unsealed", action="store_true", help="trust runs that are not sealed")
    run.add_argument("--master", default="local[*]", help="Spark's master (default: local[*])")
    run.add_argument("--memory", default="4g", help="of the driver and each executor (default: 4g)")
    run.add_argument(
        "--driver-host",
        default="127.0.0.1",
        metavar="HOST",
        help="the host name or address where the driver listens and a cluster's workers connect "
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
    run.add_argument(
        "--tables",
        action="store_true",
        help="write the tables even if the evidence is small",
    )
    run.add_argument("--debug", action="store_true", help="show stack traces of failures")


def _add_watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument("--evidence", required=True, help="the folder of a cluster or of one run")
    watch.add_argument("--out", required=True, help="the folder for the state of the watch")
    watch.add_argument("--once", action="store_true", help="read the lines that exist, and end")
    watch.add_argument("--json", action="store_true", help="print a JSON document for each batch")
    watch.add_argument("--every", type=float, default=2.0, help="seconds between two batches")
    watch.add_argument("--memory", default="1g", help="of Java (default: 1g)")
    watch.add_argument("--conf", action="append", default=[], type=_setting, help="as for `run`")
    watch.add_argument("--debug", action="store_true", help="show stack traces of failures")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.NAME=VALUE")
    return name, value


class ProgressLines:
    """Shows progress on an output that is not a terminal: at most one line every five seconds."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._shown_s = 0.0

    def show(self, done: BuiltTable, elapsed_s: float) -> None:
        """Write that a table was built, unless it is too early for another line."""
        if elapsed_s - self._shown_s >= _LINE_EVERY_S:
            self._shown_s = elapsed_s
            remaining_s = elapsed_s / done.at * (done.of - done.at)
            self.write(
                f"{done.name}: {done.rows:,} rows, {done.at} of {done.of} tables, "
                f"{elapsed_s:.0f} s, about {remaining_s:.0f} s left"
            )

    def write(self, line: str) -> None:
        """Write a line and flush it."""
        self._output.write(f"{line}\n")
        self._output.flush()


def _run(
    options: argparse.Namespace,
    find: Callable[[SparkSession], Sequence[Run]],
    console: Console,
    *,
    small: bool = False,
) -> int:
    from judge.verdicts import exit_code
    from pipeline.evidence import is_small
    from pipeline.places import local_path, place
    from pipeline.run import JUDGING, NEEDED, TABLES, Pipeline
    from pipeline.session import RAW_FILES, open_session, plan_for_small

    is_local = small and local_path(options.out) is not None
    began = time.monotonic()
    with shown_progress(console, began) as show, _log_file(options.out) as log:
        spark = open_session(
            options.master,
            memory=options.memory,
            small=small,
            driver_host=options.driver_host,
            settings={**(RAW_FILES if is_local else {}), **dict(options.conf)},
            log=log,
        )
        try:
            runs = find(spark)
            if is_small(runs) and not small:  # Remote evidence: Spark is needed to find its size.
                plan_for_small(spark, dict(options.conf))
            out = place(options.out, spark)
            pipeline = Pipeline(spark, runs, out, stored=options.tables)
            pipeline.make(JUDGING, progress=show)
            verdicts = pipeline.verdicts()
            for run, rows in verdicts.items():
                show_verdicts(console, run, rows)
            pipeline.make(TABLES if options.tables else NEEDED, progress=show)
            pipeline.write_results(verdicts)
        finally:
            spark.stop()
    report = f"{options.out.rstrip('/')}/report/index.html"
    console.print(f"{time.monotonic() - began:.0f} s; the report is {report}", soft_wrap=True)
    return exit_code(*map(worst, verdicts.values()))


@contextlib.contextmanager
def _log_file(out: str) -> Iterator[Path]:
    """Yield the file for Java's output: spark.log in `out`; a temporary one if `out` is remote."""
    from pipeline.places import local_path

    folder = local_path(out)
    if folder is not None:
        yield folder / "spark.log"
        return
    handle, name = tempfile.mkstemp(prefix="bridgehead-spark-", suffix=".log")
    os.close(handle)
    yield Path(name)  # The file stays if Spark fails: the error's message names it.
    Path(name).unlink()


@contextlib.contextmanager
def shown_progress(console: Console, began_s: float) -> Iterator[Callable[[BuiltTable], None]]:
    """Yield a function that shows each table that was built."""
    if not console.is_terminal:
        lines = ProgressLines(sys.stderr)
        lines.write("starting Spark")
        yield lambda done: lines.show(done, time.monotonic() - began_s)
        return
    with Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("starting Spark", total=None)

        def show(done: BuiltTable) -> None:
            bar.update(
                task,
                description=f"{done.name}: {done.rows:,} rows",
                completed=done.at,
                total=done.of,
            )

        yield show


def show_verdicts(console: Console, run: str, rows: Sequence[VerdictRow]) -> None:
    """Print the verdicts on a run, then the reasons for verdicts other than PASS."""
    table = Shown("verdict", "property", "judged", "violations", title=f"run {run}", box=box.SIMPLE)
    for column in table.columns[:2]:
        column.no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        colour = {"PASS": "green", "NODATA": "dim"}.get(row.verdict, "red")
        verdict = f"[{colour}]{row.verdict}[/]"
        table.add_row(
            verdict, f"{row.property} {row.name}", f"{row.judged:,}", f"{row.violations:,}"
        )
    console.print(table)
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.why:
            reasons.setdefault((row.verdict, row.why), []).append(row.property)
    for (verdict, why), properties in reasons.items():
        reason = printable(f"{', '.join(properties)}: {verdict}: {why}")
        console.print(reason, markup=False)
    if run == RUN_ID and any(row.property == "W2" and row.violations for row in rows):
        console.print(HEALTHY_KAFKA, markup=False)
    console.print(f"[bold]{worst(rows)}[/]")


if __name__ == "__main__":
    sys.exit(main())
