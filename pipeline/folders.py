"""Where tables are stored, and how a table is replaced safely even if the pipeline is killed.

    OUT/<layer>/<table>/made=<random>/run=<run id>/part-*.parquet
    OUT/<layer>/<table>/_made.json

The record `_made.json` says, for each run, in which folder its rows are, and from which evidence
and code they were built. It is written last, and readers read only the folders that it names. So
the file system need not be able to rename a folder in one step. If the record is missing or names
other evidence or code, the rows are built again. A killed pipeline may leave folders that no record
names; the next write deletes them. `Folders.write_text` writes the report and the verdicts to OUT.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import event_log
import judge
from pipeline.frames import Frames, has_no_rows, local_frame, struct_type
from pipeline.places import StoragePlace, local_place
from pipeline.table import Table

MADE: Final = "_made.json"
# Tables also depend on the formats of `event_log` and on the properties and rules of `judge`.
_CODE: Final = tuple(
    Path(str(file)).resolve().parent for file in (__file__, event_log.__file__, judge.__file__)
)


class OutputError(Exception):
    """The output folder cannot be used. The message is one sentence."""


def code_fingerprint() -> str:
    """Return a digest of the code that builds tables. If it changes, all tables are built again."""
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder.parent).as_posix()
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def copies_folder(out: Path | None) -> Iterator[Path | None]:
    """Make a folder in `out` for copies of unsealed runs, where Spark's workers can read them.

    Without a local `out` there is no such folder, and unsealed runs are rejected.

    Raises:
        OutputError: `out` cannot be written.
    """
    if out is None:
        yield None
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=".unsealed-", dir=out.resolve())
    except OSError as error:
        raise _not_writable(out, error) from error
    with temporary as name:
        yield Path(name)


def _not_writable(out: Path | StoragePlace, error: OSError) -> OutputError:
    return OutputError(f"{out} cannot be written ({error.strerror}): choose another --out.")


# By run: `from` has the digests of code and evidence; `folder` is null if the run has no rows.
Record = dict[str, dict[str, str | None]]


class Written(NamedTuple):
    """The number of rows that were written, and the rows themselves if they are kept in memory."""

    rows: int
    kept: DataFrame | None = None


class Folders:
    """The tables in one folder. `sources` has the digest of each run's evidence.

    `in_memory` is for small evidence: each table is computed into memory as one partition, and
    `write` writes it from there. Planning a scan or a shuffle takes longer than processing a few
    thousand rows.
    """

    def __init__(
        self,
        spark: SparkSession,
        out: Path | StoragePlace,
        sources: Mapping[str, str],
        *,
        in_memory: bool = False,
    ) -> None:
        self.in_memory = in_memory
        self._spark = spark
        self._out = local_place(out) if isinstance(out, Path) else out
        code = code_fingerprint()
        self._fingerprints = {run: f"{code}/{digest}" for run, digest in sources.items()}
        try:
            self._out.make_folder()
        except OSError as error:
            raise _not_writable(out, error) from error

    def missing(self, table: str) -> list[str]:
        """Return the runs for which this table must be built.

        Its rows do not exist, or were built from other evidence or by other code.
        """
        made = self._made(table)
        return [
            run
            for run, fingerprint in sorted(self._fingerprints.items())
            if run not in made or made[run].get("from") != fingerprint
        ]

    def _made(self, table: str) -> Record:
        try:
            record: Record = json.loads((self._out / table / MADE).read_bytes())
        except (OSError, ValueError):
            return {}
        return record

    def write(self, table: Table, frames: Frames, runs: Sequence[str]) -> Written:
        """Build a table's rows of these runs, replacing older ones.

        Raises:
            TableError: the rows violate the table's schema or an expectation; nothing is replaced.
        """
        if self.in_memory:
            rows, kept = self._rows(table, frames, runs)
            folder = self._new_folder(table)
            if rows:
                _save(table, kept, folder, runs)
            written = Written(rows, kept)
        else:
            rows, folder = self._write_stored(table, frames, runs)
            written = Written(rows)
        self._publish(table, runs, folder)
        return written

    def write_empty(self, table: Table, runs: Sequence[str]) -> Written:
        """Record that a table has no rows of these runs; delete the rows that it had."""
        self._publish(table, runs, self._new_folder(table))
        return self.hold_empty(table)

    def _new_folder(self, table: Table) -> StoragePlace:
        return self._out / table.name / f"made={uuid.uuid4().hex[:12]}"

    def _publish(self, table: Table, runs: Sequence[str], folder: StoragePlace) -> None:
        """Record that a folder has the rows of these runs; delete folders that no record names."""
        parts = {part.name for part in folder.folders()}
        made = self._made(table.name)
        for run in runs:
            has_rows = f"run={run}" in parts
            made[run] = {
                "from": self._fingerprints[run],
                "folder": folder.name if has_rows else None,
            }
        (self._out / table.name / MADE).write(json.dumps(made).encode())
        named = {row["folder"] for row in made.values()}
        for existing in (self._out / table.name).folders():
            if existing.name not in named:
                existing.delete()

    def hold(self, table: Table, frames: Frames, runs: Sequence[str]) -> Written:
        """Compute a table's rows of these runs and keep them in memory; nothing is written.

        Raises:
            TableError: the rows violate the table's schema or an expectation.
        """
        return Written(*self._rows(table, frames, runs))

    def hold_empty(self, table: Table) -> Written:
        """Return a table without rows."""
        return Written(0, local_frame(self._spark, [], table.schema))

    def _rows(self, table: Table, frames: Frames, runs: Sequence[str]) -> tuple[int, DataFrame]:
        made = table.make(frames)
        if has_no_rows(made):
            return 0, made
        check = table.check(runs)
        observed = made.observe(check.observation, *check.columns)
        frame = observed.coalesce(1).localCheckpoint(eager=True)
        rows = check.rows()
        # Spark's planner skips the joins of a table that it knows to be empty.
        return rows, frame if rows else local_frame(self._spark, [], table.schema)

    def _write_stored(
        self, table: Table, frames: Frames, runs: Sequence[str]
    ) -> tuple[int, StoragePlace]:
        """Write and check the rows of all runs in one pass; return their number."""
        folder, made = self._new_folder(table), table.make(frames)
        if has_no_rows(made):
            return 0, folder
        check = table.check(runs)
        _save(table, made.observe(check.observation, *check.columns), folder, runs)
        rows = check.rows()
        if not rows:
            folder.delete()  # A table without rows has no folder.
        return rows, folder

    def read(self, table: Table, runs: Sequence[str]) -> DataFrame:
        """Read a table's rows of these runs.

        Raises:
            LookupError: the table was not built for one of them. "No rows" would hide that.
        """
        schema = struct_type(table.schema)
        of_table, made = self._out / table.name, self._made(table.name)
        if not_built := [run for run in runs if run not in made]:
            raise LookupError(f"{table.name} was not built for run {not_built[0]}")
        held = [
            (of_table / folder / f"run={run}").uri
            for run in runs
            if (folder := made[run].get("folder"))
        ]
        if not held:
            return local_frame(self._spark, [], table.schema)
        reader = self._spark.read.schema(schema).option("basePath", of_table.uri)
        return reader.parquet(*held).select(*schema.names)

    def write_text(self, name: str, text: str) -> None:
        """Write a small file, in one step."""
        (self._out / name).write(text.encode())


def _save(table: Table, frame: DataFrame, folder: StoragePlace, runs: Sequence[str]) -> None:
    """Write rows of these runs, each run in its own folder."""
    columns = [] if table.divided_by is None else [table.divided_by]
    if len(runs) == 1:
        frame, folder = frame.drop("run"), folder / f"run={runs[0]}"
    else:
        columns.insert(0, "run")
    rows = frame.write.partitionBy(*columns) if columns else frame.write
    rows.parquet(folder.uri)


def in_memory(frame: DataFrame) -> DataFrame:
    """Return a frame whose rows are computed once; later plans do not contain their query.

    It has one partition, so no join needs a shuffle. Unlike a cached frame it has no columnar
    buffers: for these, Spark compiles a class for each set of columns that is read.
    """
    return frame.coalesce(1).localCheckpoint(eager=False)


def digests(frame: DataFrame, *, by: str = "run") -> dict[str, tuple[int, str]]:
    """Return, by run, the number of rows and an order-independent sum of their hashes.

    `by` names another column to group by.
    """
    columns = [
        F.expr(f"array_sort(map_entries(`{field.name}`))")
        if isinstance(field.dataType, T.MapType)
        else F.col(field.name)
        for field in frame.schema
        if field.name != by
    ]
    hashed = frame.select(by, F.xxhash64(*columns).cast("decimal(38,0)").alias("hash"))
    rows = hashed.groupBy(by).agg(F.count("*").alias("rows"), F.sum("hash").alias("sum"))
    return {row[by]: (row["rows"], str(row["sum"])) for row in rows.collect()}
