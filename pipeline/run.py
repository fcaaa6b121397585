"""The pipeline, stage by stage. `TABLES` lists every table in the order in which it is built.

Each stage builds one table for all runs that lack it, and ends with a rename. A pipeline that was
killed continues where it was; tables that exist are not built again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from event_log.verdicts import Count, VerdictRow
from pipeline import verdicts
from pipeline.bronze import lines
from pipeline.evidence import EvidenceError, Run
from pipeline.expectations import REJECTING
from pipeline.folders import Folders
from pipeline.gold import accounting, answers, forwarding, kafka, latency, requests, timeline
from pipeline.gold import commits as gold_commits
from pipeline.report.collect import collect
from pipeline.report.junit import junit
from pipeline.report.page import page
from pipeline.silver import boots, commits, events, gaps, kafka_logs, set_aside
from pipeline.sources import SOURCES, source_frames
from pipeline.table import Table

TABLES: Final[tuple[Table, ...]] = (
    lines.LINES,
    lines.BLOCKS,
    events.EVENTS,
    commits.COMMITS,
    commits.DUMPS,
    kafka_logs.REQUESTS,
    kafka_logs.DECISIONS,
    set_aside.SET_ASIDE,
    commits.OUTCOMES,
    boots.BOOTS,
    boots.SESSIONS,
    boots.TERMS,
    gaps.GAPS,
    requests.REQUESTS,
    requests.FORWARDS,
    answers.ANSWERS,
    answers.COMMITTED,
    answers.LIVES,
    answers.DECISIONS,
    answers.OPERATIONS,
    answers.TOLD,
    gold_commits.ADMIN_WRITES,
    gold_commits.COMMITS,
    gold_commits.CONTROLLER_TERMS,
    accounting.ACCOUNTING,
    latency.LATENCY,
    latency.PROPAGATION,
    forwarding.WINDOWS,
    forwarding.COUNTERS,
    forwarding.SHARES,
    forwarding.REFUSALS,
    forwarding.SOFTWARE,
    forwarding.EFFECTS,
    timeline.TIMELINE,
    kafka.SHARES,
    kafka.LATENCY,
    kafka.DENIALS,
    kafka.UNFENCED,
    verdicts.FINDINGS,
    verdicts.VIOLATIONS,
    verdicts.COUNTS,
)
BY_NAME: Final = {table.name: table for table in TABLES}

# Below this size tables are kept in memory: opening many small files costs more than their bytes.
KEPT_IN_MEMORY_BYTES_MAX: Final = 64 << 20

Progress = Callable[[str, int, int], None]


class Pipeline:
    """Sealed runs and the output folder of their tables.

    Raises:
        OutputError: the output folder cannot be written.
    """

    def __init__(self, spark: SparkSession, runs: Sequence[Run], out: Path) -> None:
        self._spark = spark
        self.runs = runs
        self._by_id = {run.id: run for run in self.runs}
        self._bytes = sum(file.bytes for run in runs for file in run.manifest.files)
        self._kept: dict[tuple[str, tuple[str, ...]], DataFrame] = {}
        self._sources: dict[tuple[str, ...], dict[str, DataFrame]] = {}
        sources = {run.id: run.digest for run in self.runs}
        few = self._bytes <= KEPT_IN_MEMORY_BYTES_MAX
        self.folders = Folders(spark, out, sources, few_files=few)

    def make(
        self, tables: Sequence[Table] = TABLES, progress: Progress = lambda *_: None
    ) -> list[str]:
        """Build the tables that are missing; return their names.

        Raises:
            EvidenceError: a line is another run's.
        """
        built = []
        for at, table in enumerate(tables):
            progress(table.name, at, len(tables))
            if self._make(table):
                built.append(table.name)
            if table is set_aside.SET_ASIDE:
                self._reject_other_runs()
        return built

    def _make(self, table: Table) -> bool:
        missing = self.folders.missing(table.name)
        if not missing:
            return False
        self.folders.write(table, self._inputs(table, missing), missing)
        return True

    def _inputs(self, table: Table, runs: Sequence[str]) -> dict[str, DataFrame]:
        given = {}
        if any(name in SOURCES for name in table.inputs):
            given = self._given(tuple(runs))
        return {
            name: given[name] if name in given else self._read(name, runs) for name in table.inputs
        }

    def _given(self, runs: tuple[str, ...]) -> dict[str, DataFrame]:
        if runs not in self._sources:
            self._sources[runs] = source_frames(self._spark, [self._by_id[run] for run in runs])
        return self._sources[runs]

    def read(self, name: str) -> DataFrame:
        """Return a table's rows of all runs."""
        return self._read(name, sorted(self._by_id))

    def _read(self, name: str, runs: Sequence[str]) -> DataFrame:
        if self._bytes > KEPT_IN_MEMORY_BYTES_MAX:
            return self.folders.read(BY_NAME[name], runs)
        key = (name, tuple(runs))
        if key not in self._kept:
            self._kept[key] = self.folders.read(BY_NAME[name], runs).cache()
        return self._kept[key]

    def verdicts(self) -> dict[str, list[VerdictRow]]:
        """Return the verdict on every property of every run."""
        counts: dict[str, dict[str, Count]] = {run: {} for run in self._by_id}
        for row in self.read(verdicts.COUNTS.name).collect():
            counts[row["run"]][row["property"]] = Count(
                row["judged"], row["violations"], row["first_sentence"] or ""
            )
        first_gaps: dict[str, dict[str, str]] = {run: {} for run in self._by_id}
        for row in self.read(gaps.GAPS.name).collect():
            first_gaps[row["run"]][row["witness"]] = row["first_hole"]
        return {
            run.id: verdicts.verdict_rows(run, counts[run.id], first_gaps[run.id])
            for run in self.runs
        }

    def write_results(self, found: Mapping[str, Sequence[VerdictRow]]) -> None:
        """Write the report, verdicts.json and junit.xml."""
        documents = [verdicts.verdict_document(run, found[run.id]) for run in self.runs]
        self.folders.write_text("verdicts.json", json.dumps(documents, indent=2) + "\n")
        self.folders.write_text("junit.xml", junit(found))
        self.folders.write_text("report/index.html", page(collect(self, self.runs, found)))

    def _reject_other_runs(self) -> None:
        for reason in REJECTING:
            found = self.read(set_aside.SET_ASIDE.name).filter(
                f"array_contains(reasons, '{reason}')"
            )
            first = found.orderBy("run", "file", "line_number").limit(1)
            for row in first.selectExpr("*", "get_json_object(line, '$.run_id') AS of").collect():
                raise EvidenceError(
                    f"{row['file']}:{row['line_number']} is of run {row['of']}, not of "
                    f"{row['run']}: remove the file."
                )
