"""The pipeline. `TABLES` lists every table after its inputs.

As soon as a table's inputs exist, the table is built for all runs that do not have it yet. The file
`_made.json` publishes it (`pipeline.folders`). If the pipeline is killed, the next one does not
build the published tables again. The tables of small evidence are written only on request, because
writing them takes longer than building them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from judge.verdicts import Count, VerdictRow
from pipeline import verdicts
from pipeline.bronze import lines
from pipeline.evidence import PipelineEvidenceError, Run, is_small
from pipeline.expectations import REJECTING
from pipeline.folders import Folders, in_memory
from pipeline.frames import has_no_rows, local_frame
from pipeline.gold import (
    accounting,
    admin_writes,
    client_outcomes,
    client_software,
    committed,
    controller_terms,
    counters,
    counts,
    decisions,
    effects,
    findings,
    forwarded_shares,
    forwarding_windows,
    forwards,
    kafka_denials,
    kafka_forwarded,
    kafka_latency,
    latency,
    operations,
    propagation,
    rejections,
    requests,
    responses,
    timeline,
    topic_lives,
    unfenced_writes,
    violations,
)
from pipeline.gold import commits as gold_commits
from pipeline.places import StoragePlace
from pipeline.report.collect import QUERIES, collect
from pipeline.report.figures import FIGURES, figures_to_json
from pipeline.report.junit import junit
from pipeline.report.page import page
from pipeline.silver import (
    boots,
    commits,
    dumps,
    events,
    gaps,
    kafka_logs,
    outcomes,
    sessions,
    set_aside,
    terms,
)
from pipeline.sources import SOURCES, source_frames
from pipeline.table import Table

TABLES: Final[tuple[Table, ...]] = (
    lines.LINES,
    lines.COUNTS,
    events.EXAMINED,
    events.SUPERFLUOUS,
    events.EVENTS,
    *events.OF_KINDS,
    commits.COMMITS,
    dumps.DUMPS,
    kafka_logs.REQUESTS,
    kafka_logs.DECISIONS,
    set_aside.SET_ASIDE,
    outcomes.OUTCOMES,
    boots.BOOTS,
    sessions.SESSIONS,
    terms.TERMS,
    gaps.GAPS,
    requests.REQUESTS,
    forwards.FORWARDS,
    responses.RESPONSES,
    committed.COMMITTED,
    topic_lives.TOPIC_LIVES,
    decisions.DECISIONS,
    operations.OPERATIONS,
    client_outcomes.CLIENT_OUTCOMES,
    admin_writes.ADMIN_WRITES,
    gold_commits.COMMITS,
    controller_terms.CONTROLLER_TERMS,
    accounting.ACCOUNTING,
    latency.LATENCY,
    propagation.PROPAGATION,
    forwarding_windows.FORWARDING_WINDOWS,
    counters.COUNTERS,
    forwarded_shares.FORWARDED_SHARES,
    rejections.REJECTIONS,
    client_software.CLIENT_SOFTWARE,
    effects.EFFECTS,
    timeline.TIMELINE,
    kafka_forwarded.KAFKA_FORWARDED,
    kafka_latency.KAFKA_LATENCY,
    kafka_denials.KAFKA_DENIALS,
    unfenced_writes.UNFENCED_WRITES,
    *findings.FINDINGS,
    violations.VIOLATIONS,
    counts.COUNTS,
)
BY_NAME: Final = {table.name: table for table in TABLES}


def needed(names_read: Iterable[str]) -> tuple[Table, ...]:
    """Return these tables and the tables from which they are made, each after its inputs."""
    names: set[str] = set()
    waiting = set(names_read)
    while waiting:
        name = waiting.pop()
        names.add(name)
        waiting.update(set(BY_NAME[name].inputs) - set(SOURCES) - names)
    return tuple(table for table in TABLES if table.name in names)


_VERDICTS: Final = (counts.COUNTS.name, gaps.GAPS.name, set_aside.SET_ASIDE.name)
_REPORTED: Final = frozenset(name for inputs, _ in QUERIES.values() for name in inputs)
# The tables that a verdict needs, and those that a verdict or the report needs.
JUDGING: Final = needed(_VERDICTS)
NEEDED: Final = needed({*_VERDICTS, *_REPORTED})
# One query of the report reads such a table once. For small evidence, it is a view.
_ONLY_REPORTED: Final = _REPORTED - {name for table in TABLES for name in table.inputs}
_THREADS: Final = 4  # More are not faster, because the driver plans all queries.
_CANCELLED_WITHIN_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class BuiltTable:
    """A table was built, with `rows` rows. It is number `at` of the `of` tables to build."""

    name: str
    rows: int
    at: int
    of: int


class Pipeline:
    """Sealed runs and the output folder of their tables.

    If `in_memory` is true (the default for small evidence), a local Spark keeps the tables in
    memory, and writes them to the folder only if `stored` is true.

    Raises:
        OutputError: the output folder cannot be written.
    """

    def __init__(
        self,
        spark: SparkSession,
        runs: Sequence[Run],
        out: Path | StoragePlace,
        *,
        in_memory: bool | None = None,
        stored: bool = True,
        threads: int = _THREADS,
    ) -> None:
        self._spark = spark
        self.runs = runs
        self._by_id = {run.id: run for run in self.runs}
        self._threads = threads
        # The rows of each table, by its name and the ids of the runs.
        self._kept: dict[tuple[str, tuple[str, ...]], DataFrame] = {}
        self._sources: dict[tuple[str, ...], dict[str, DataFrame]] = {}
        self._lock = RLock()  # guards the two dictionaries
        if in_memory is None:
            in_memory = is_small(runs)
        sources = {run.id: run.digest for run in self.runs}
        # On a cluster the rows would be in an executor's memory, and lost when it ends.
        local = str(spark.sparkContext.master).startswith("local")
        self.folders = Folders(spark, out, sources, in_memory=in_memory and local)
        self._stored = stored or not self.folders.in_memory

    def make(
        self, tables: Sequence[Table] = TABLES, progress: Callable[[BuiltTable], None] | None = None
    ) -> list[str]:
        """Build the tables that are missing, several at a time; return their names.

        Raises:
            EvidenceError: a line belongs to another run.
        """
        missing = {
            table.name: [] if self._is_view(table) else self._missing(table) for table in tables
        }
        waiting = [table for table in tables if missing[table.name]]
        todo = [table.name for table in waiting]
        running: dict[Future[int], Table] = {}
        done = 0
        pool = ThreadPoolExecutor(self._threads)
        try:
            while waiting or running:
                unfinished = {table.name for table in (*waiting, *running.values())}
                for table in [
                    candidate
                    for candidate in waiting
                    if unfinished.isdisjoint(self._inputs_of_views(candidate))
                ]:
                    waiting.remove(table)
                    running[pool.submit(self._make, table, missing[table.name])] = table
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    table, rows = running.pop(future), future.result()
                    done += 1
                    if progress:
                        progress(BuiltTable(table.name, rows, done, len(todo)))
        except BaseException:
            # A query that hangs in Spark must not block Ctrl-C, or the time limit of a test.
            pool.shutdown(wait=False, cancel_futures=True)
            self._spark.sparkContext.cancelAllJobs()
            begun = [candidate for candidate in running if not candidate.cancelled()]
            wait(begun, timeout=_CANCELLED_WITHIN_S)
            raise
        pool.shutdown()
        return todo

    def _is_view(self, table: Table) -> bool:
        is_kept = table.is_kept_in_memory and table.name not in _ONLY_REPORTED
        return not (table.is_stored if self._stored else is_kept)

    def _inputs_of_views(self, table: Table) -> set[str]:
        """Return the inputs of a table, and those of the views among them."""
        names = set(table.inputs)
        for name in table.inputs:
            if name in BY_NAME and self._is_view(BY_NAME[name]):
                names |= self._inputs_of_views(BY_NAME[name])
        return names

    def _missing(self, table: Table) -> list[str]:
        if self._stored:
            return self.folders.missing(table.name)
        runs = sorted(self._by_id)
        with self._lock:
            return [] if (table.name, tuple(runs)) in self._kept else runs

    def _make(self, table: Table, runs: Sequence[str]) -> int:
        self._spark.sparkContext.setJobGroup(table.name, table.name)
        concerns = any(table.concerns(self._by_id[run].manifest) for run in runs)
        if self._stored:
            written = (
                self.folders.write(table, self._inputs(table, runs), runs)
                if concerns
                else self.folders.write_empty(table, runs)
            )
        else:
            written = (
                self.folders.hold(table, self._inputs(table, runs), runs)
                if concerns
                else self.folders.hold_empty(table)
            )
        if written.kept is not None:
            with self._lock:
                self._kept[table.name, tuple(runs)] = written.kept
        if table is set_aside.SET_ASIDE and written.rows:
            self._reject_other_runs(runs)
        return written.rows

    def _inputs(self, table: Table, runs: Sequence[str]) -> dict[str, DataFrame]:
        given_tables = self._given(tuple(runs)) if set(SOURCES) & set(table.inputs) else {}
        return {
            name: given_tables[name] if name in given_tables else self._read(name, runs)
            for name in table.inputs
        }

    def _given(self, runs: tuple[str, ...]) -> dict[str, DataFrame]:
        with self._lock:
            if runs not in self._sources:
                chosen = [self._by_id[run] for run in runs]
                few = self.folders.in_memory
                self._sources[runs] = source_frames(self._spark, chosen, few=few)
            return self._sources[runs]

    def read(self, name: str) -> DataFrame:
        """Return a table's rows of all runs."""
        return self._read(name, sorted(self._by_id))

    def _read(self, name: str, runs: Sequence[str]) -> DataFrame:
        with self._lock:
            key = (name, tuple(runs))
            if key in self._kept:
                return self._kept[key]
            table = BY_NAME[name]
            if self._is_view(table):
                concerns = any(table.concerns(self._by_id[run].manifest) for run in runs)
                made = (
                    table.make(self._inputs(table, runs))
                    if concerns
                    else local_frame(self._spark, [], table.schema)
                )
                self._kept[key] = made
                return made
            frame = self.folders.read(table, runs)  # kept: listing files takes time
            can_be_kept = self.folders.in_memory and not has_no_rows(frame)
            self._kept[key] = in_memory(frame) if can_be_kept else frame
            return self._kept[key]

    def verdicts(self) -> dict[str, list[VerdictRow]]:
        """Return the verdict on every property of every run."""
        counted: dict[str, dict[str, Count]] = {run: {} for run in self._by_id}
        for row in self.read(counts.COUNTS.name).collect():
            counted[row["run"]][row["property"]] = Count(
                row["judged"], row["violations"], row["first_sentence"] or ""
            )
        first_gaps: dict[str, dict[str, str]] = {run: {} for run in self._by_id}
        for row in self.read(gaps.GAPS.name).collect():
            first_gaps[row["run"]][row["witness"]] = row["first_gap"]
        return {
            run.id: verdicts.verdict_rows(run, counted[run.id], first_gaps[run.id])
            for run in self.runs
        }

    def write_results(self, rows_of_run: Mapping[str, Sequence[VerdictRow]]) -> None:
        """Write the report, verdicts.json, junit.xml and figures.json."""
        documents = [verdicts.verdict_document(run, rows_of_run[run.id]) for run in self.runs]
        self.folders.write_text("verdicts.json", json.dumps(documents, indent=2) + "\n")
        self.folders.write_text("junit.xml", junit(rows_of_run))
        contents = collect(self, self.runs, rows_of_run)
        self.folders.write_text(FIGURES, figures_to_json(contents))
        self.folders.write_text("report/index.html", page(contents))

    def _reject_other_runs(self, runs: Sequence[str]) -> None:
        for reason in REJECTING:
            foreign = self._read(set_aside.SET_ASIDE.name, runs).filter(
                f"array_contains(reasons, '{reason}')"
            )
            first = foreign.orderBy("run", "file", "line_number").limit(1)
            for row in first.selectExpr("*", "get_json_object(line, '$.run_id') AS of").collect():
                raise PipelineEvidenceError(
                    f"{row['file']}:{row['line_number']} is of run {row['of']}, not of "
                    f"{row['run']}: remove the file."
                )
