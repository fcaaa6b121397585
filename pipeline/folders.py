"""Where tables are stored, and how one is replaced safely even if the pipeline is killed.

    OUT/<layer>/<table>/run=<run id>/part-*.parquet, _made.json
    OUT/.building/<table>/                  rows that are being written; never read

One rename publishes a table's rows of one run, together with `_made.json`, which names the evidence
and the code they were built from. If that file is missing or names others, the rows are built
again. The other results of the pipeline are written here, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pipeline.table import Frames, Table, local_frame, struct_type

MADE: Final = "_made.json"
_BUILDING: Final = ".building"
_CODE: Final = Path(__file__).resolve().parent


class OutputError(Exception):
    """The output folder cannot be used. The message is one sentence."""


def code_fingerprint() -> str:
    """Return a digest of the pipeline's code; tables of another version are built again."""
    digest = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(path.relative_to(_CODE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def uri(path: Path) -> str:
    """Return a folder's URI, so that Spark uses the local file system."""
    return f"file://{path}"


@contextlib.contextmanager
def copies_folder(out: Path) -> Iterator[Path]:
    """Make a folder in `out` for copies of unsealed runs, where Spark's workers can read them.

    Raises:
        OutputError: `out` cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=".unsealed-", dir=out.resolve())
    except OSError as error:
        raise _not_writable(out, error) from error
    with temporary as name:
        yield Path(name)


def _not_writable(out: Path, error: OSError) -> OutputError:
    return OutputError(f"{out} cannot be written ({error.strerror}): choose another --out.")


class Written(NamedTuple):
    """The number of rows that were written, and the rows themselves if they are kept in memory."""

    rows: int
    kept: DataFrame | None = None


class Folders:
    """The tables in one folder. `sources` has the digest of each run's evidence.

    `in_memory` is for small evidence: rows are kept in memory as one partition, and written from
    there if they are written. Planning a scan or a shuffle takes longer than processing a few
    thousand rows.
    """

    def __init__(
        self,
        spark: SparkSession,
        out: Path,
        sources: Mapping[str, str],
        *,
        in_memory: bool = False,
    ) -> None:
        self.in_memory = in_memory
        self._spark = spark
        self._out = out.resolve()
        code = code_fingerprint()
        self._fingerprints = {run: f"{code}/{digest}" for run, digest in sources.items()}
        try:
            self._out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(out, error) from error

    def missing(self, table: str) -> list[str]:
        """Return the runs whose rows of this table do not exist."""
        return [run for run in sorted(self._fingerprints) if not self._is_made(table, run)]

    def _is_made(self, table: str, run: str) -> bool:
        try:
            record = json.loads((self._folder(table, run) / MADE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(record.get("from") == self._fingerprints[run])

    def _folder(self, table: str, run: str) -> Path:
        return self._out / table / f"run={run}"

    def write(self, table: Table, frames: Frames, runs: Sequence[str]) -> Written:
        """Build a table's rows of these runs, replacing older ones.

        Raises:
            TableError: the rows violate the table's schema or an expectation; nothing is replaced.
        """
        building = self._out / _BUILDING / table.name
        shutil.rmtree(building, ignore_errors=True)
        if self.in_memory:
            written = self._write_in_memory(table, frames, building)
        else:
            written = self._write_stored(table, frames, building)
        for run in runs:
            part = building / f"run={run}"
            part.mkdir(parents=True, exist_ok=True)
            (part / MADE).write_text(json.dumps({"from": self._fingerprints[run]}), "utf-8")
            target = self._folder(table.name, run)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(part, target)
        shutil.rmtree(building, ignore_errors=True)
        return written

    def write_empty(self, table: Table, runs: Sequence[str]) -> Written:
        """Record that a table has no rows of these runs, replacing older ones."""
        for run in runs:
            target = self._folder(table.name, run)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            (target / MADE).write_text(json.dumps({"from": self._fingerprints[run]}), "utf-8")
        return self.hold_empty(table)

    def hold(self, table: Table, frames: Frames) -> Written:
        """Compute a table's rows and keep them in memory; nothing is written.

        Raises:
            TableError: the rows violate the table's schema or an expectation.
        """
        return Written(*self._rows(table, frames))

    def hold_empty(self, table: Table) -> Written:
        """Return a table without rows."""
        return Written(0, local_frame(self._spark, [], table.schema))

    def _rows(self, table: Table, frames: Frames) -> tuple[int, DataFrame]:
        rows, frame = _computed(table, table.make(frames))
        final = table.finalize(frames, frame) if table.finalize is not None else None
        if final is not None:
            rows, frame = _computed(table, final.select(*table.columns()))
        # Spark's planner skips the joins of a table that it knows to be empty.
        return rows, frame if rows else local_frame(self._spark, [], table.schema)

    def _write_in_memory(self, table: Table, frames: Frames, building: Path) -> Written:
        rows, frame = self._rows(table, frames)
        building.parent.mkdir(parents=True, exist_ok=True)
        if rows:
            frame.write.partitionBy("run").parquet(uri(building))
        return Written(rows, frame)

    def _write_stored(self, table: Table, frames: Frames, building: Path) -> Written:
        rows = self._store(table, table.make(frames), building)
        if table.finalize is None:
            return Written(rows)
        final = table.finalize(frames, self._stored(table, building))
        if final is not None:
            again = building.with_name(building.name + "-again")
            shutil.rmtree(again, ignore_errors=True)
            rows = self._store(table, final.select(*table.columns()), again)
            shutil.rmtree(building)
            os.replace(again, building)
        return Written(rows)

    def _store(self, table: Table, frame: DataFrame, building: Path) -> int:
        """Write the rows of all runs, and check them as they are written; return their number."""
        building.parent.mkdir(parents=True, exist_ok=True)
        check = table.check()
        frame = frame.observe(check.observation, *check.columns)
        frame.write.partitionBy("run").parquet(uri(building))
        return check.rows()

    def _stored(self, table: Table, building: Path) -> DataFrame:
        schema = struct_type(table.schema)
        if not any(building.glob("run=*/*.parquet")):
            return local_frame(self._spark, [], table.schema)
        return self._spark.read.schema(schema).parquet(uri(building)).select(*schema.names)

    def read(self, table: Table, runs: Iterable[str]) -> DataFrame:
        """Read a table's rows of these runs."""
        schema = struct_type(table.schema)
        paths = [self._folder(table.name, run) for run in runs]
        held = [uri(path) for path in paths if any(path.glob("*.parquet"))]
        if not held:
            return local_frame(self._spark, [], table.schema)
        reader = self._spark.read.schema(schema).option("basePath", uri(self._out / table.name))
        return reader.parquet(*held).select(*schema.names)

    def write_text(self, name: str, text: str) -> Path:
        """Write a small file, in one step."""
        path = self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
        return path


def in_memory(frame: DataFrame) -> DataFrame:
    """Return a frame whose rows are already computed; its plan does not contain their query.

    It has one partition, so no join needs a shuffle. Unlike a cached frame it has no columnar
    buffers: for these, Spark compiles a class for each set of columns that is read.
    """
    return frame.coalesce(1).localCheckpoint(eager=False)


def _computed(table: Table, frame: DataFrame) -> tuple[int, DataFrame]:
    """Compute a table's rows, and check them as they are computed; return their number and them."""
    check = table.check()
    observed = frame.observe(check.observation, *check.columns)
    rows = observed.coalesce(1).localCheckpoint(eager=True)
    return check.rows(), rows


def digests(frame: DataFrame) -> dict[str, tuple[int, str]]:
    """Return, by run, the number of rows and an order-independent sum of their hashes."""
    columns = [
        F.expr(f"array_sort(map_entries(`{field.name}`))")
        if isinstance(field.dataType, T.MapType)
        else F.col(field.name)
        for field in frame.schema
    ]
    hashed = frame.select("run", F.xxhash64(*columns).cast("decimal(38,0)").alias("hash"))
    rows = hashed.groupBy("run").agg(F.count("*").alias("rows"), F.sum("hash").alias("sum"))
    return {row["run"]: (row["rows"], str(row["sum"])) for row in rows.collect()}
