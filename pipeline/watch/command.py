"""The command `pipeline watch`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from event_log.evidence import MANIFEST
from judge.evidence.run_files import EvidenceError, is_file
from judge.evidence.run_lookup import find_runs
from pipeline.places import local_path
from pipeline.session import RAW_FILES, open_session
from pipeline.watch.screen import screen
from pipeline.watch.stream import Stream, WatchError, only_watch
from pipeline.watch.summary import Summary

Show = Callable[[Summary], None]


def watch(options: argparse.Namespace, console: Console) -> None:
    """Show the last run of a folder until it is sealed; with `--once`, show one batch.

    Raises:
        WatchError: the run or the folder for the state cannot be used.
    """
    evidence, out = local_path(options.evidence), local_path(options.out)
    if evidence is None or out is None:
        raise WatchError("A run is watched where its nodes write it: give paths, not URIs.")
    try:
        run = find_runs(evidence)[-1]
    except EvidenceError as error:
        raise WatchError(str(error)) from None
    folder = out / "watch" / f"run={run.resolve().name.removeprefix('run=')}"
    with only_watch(folder), _shown(console, as_json=options.json) as show:
        spark = open_session(
            small=True,
            memory=options.memory,
            settings={**RAW_FILES, **dict(options.conf)},
            log=out / "spark.log",
        )
        # PySpark's handler would first cancel the jobs of the batch. That is not needed: a batch
        # may be interrupted at any moment, and Java ends with this process.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            follow(Stream(spark, run, folder), run, show, options)
        except EvidenceError as error:
            raise WatchError(str(error)) from None
        finally:
            spark.stop()


def follow(stream: Stream, run: Path, show: Show, options: argparse.Namespace) -> None:
    """Show each batch until the run is sealed; with `--once`, show one batch."""
    shown: Summary | None = None
    while True:
        began_s = time.monotonic()
        is_sealed = is_file(run, MANIFEST)  # If true, `advance` reads the last lines.
        summary = stream.advance()
        if shown is None or summary.batch != shown.batch:
            shown = summary
            show(summary)
        if options.once or is_sealed:
            return
        time.sleep(max(options.every - (time.monotonic() - began_s), 0.0))


@contextmanager
def _shown(console: Console, *, as_json: bool) -> Iterator[Show]:
    """Yield a function that shows a summary."""
    if as_json:
        yield lambda summary: _write_line(summary.to_json())
    elif console.is_terminal:
        with Live(Text("starting Spark"), console=console, auto_refresh=False) as live:
            yield lambda summary: live.update(screen(summary), refresh=True)
    else:
        yield lambda summary: console.print(screen(summary))


def _write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
