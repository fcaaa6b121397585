"""A table: its name, schema and inputs, and the conditions that every row must meet."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from event_log.evidence import Manifest

Frames = Mapping[str, DataFrame]
_WORD: Final = re.compile(r"\w+")


@functools.cache
def struct_type(ddl: str) -> T.StructType:
    """Parse DDL. A session must be open."""
    read = T.StructType.fromDDL(ddl)
    assert isinstance(read, T.StructType)
    return read


def local_frame(spark: SparkSession, rows: Sequence[Sequence[object]], ddl: str) -> DataFrame:
    """Return a small frame whose rows are constants in Spark's plan.

    If a filter removes all these rows, Spark's optimizer also removes an inner join with them, and
    the other table is not read. A frame from `createDataFrame` would start Python workers at every
    use.
    """
    schema = struct_type(ddl)
    session = spark._jsparkSession
    java_rows = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    if rows:
        text = json.dumps([dict(zip(schema.names, row, strict=True)) for row in rows])
        listed = F.from_json(F.lit(text), T.ArrayType(schema))
        java_rows = spark.range(1).select(F.inline(listed))._jdf.collectAsList()
    return DataFrame(
        session.createDataFrame(java_rows, session.parseDataType(schema.json())), spark
    )


class TableError(Exception):
    """A table violates its schema or an expectation. This is a bug of the pipeline."""


class Check:
    """Counts the rows of a table, and those that violate an expectation, while they are written.

    A null condition counts as violated. Every row must belong to one of `runs`: the folder of a
    single run has no column `run`, so a row of another run would be read as a row of this run.
    """

    def __init__(self, table: Table, runs: Sequence[str]) -> None:
        self._table = table
        listed = ", ".join(f"'{run}'" for run in runs)
        self._conditions = {"a row belongs to a run": f"run IN ({listed})", **table.expectations}
        self.observation = Observation()
        self.columns = [F.count(F.lit(1)).alias("rows")] + [
            F.count(F.when(~F.coalesce(F.expr(condition), F.lit(False)), True)).alias(str(at))
            for at, condition in enumerate(self._conditions.values())
        ]

    def rows(self) -> int:
        """Wait for the counts; return the number of rows.

        Raises:
            TableError: a row violates an expectation.
        """
        counts = self.observation.get
        for at, description in enumerate(self._conditions):
            if violating := counts[str(at)]:
                raise TableError(f"{self._table.name}: {violating} rows violate '{description}'")
        return int(counts["rows"])


def _always(_: Manifest) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One output. `build` is pure: data frames in, a data frame with a column `run` out."""

    name: str  # layer/name, also its folder
    inputs: Sequence[str]
    schema: str  # DDL, with `run` in front
    build: Callable[[Frames], DataFrame]
    # Gets the written rows; returns rows that replace them, or None to keep them.
    finalize: Callable[[Frames, DataFrame], DataFrame | None] | None = None
    # False if a run with this manifest has no rows in the table. If false for all runs, no query
    # is executed.
    concerns: Callable[[Manifest], bool] = _always
    # SQL conditions, by their descriptions. Every row must satisfy all of them.
    expectations: Mapping[str, str] = field(default_factory=dict)

    def make(self, frames: Frames) -> DataFrame:
        """Return the built frame with exactly the schema's columns.

        Raises:
            TableError: the types differ from the schema.
        """
        frame = self.build({name: frames[name] for name in self.inputs})
        if frame.columns != self.columns():
            frame = frame.select(*self.columns())
        expected = struct_type(self.schema)
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        if found != [(field.name, field.dataType.simpleString()) for field in expected]:
            raise TableError(f"{self.name} has columns {found}, expected {self.schema}")
        return frame

    def check(self, runs: Sequence[str]) -> Check:
        """Return the check to run on the rows of these runs while they are written."""
        return Check(self, runs)

    def columns(self) -> list[str]:
        """Return the names of the table's columns, in order. A session must be open."""
        return list(struct_type(self.schema).names)


_views: Final[WeakKeyDictionary[DataFrame, str]] = WeakKeyDictionary()
_views_made: Final = itertools.count()


def _view(frame: DataFrame) -> str:
    """Return the name of the frame's view. Creating a view takes time, so a frame has only one."""
    name = _views.get(frame)
    if name is None:
        # A new name, because views belong to the session, which builds several tables at a time.
        name = f"frame_{next(_views_made)}"
        frame.createOrReplaceTempView(name)
        _views[frame] = name
    return name


def query(text: str, *, every_column: bool = False) -> Callable[[Frames], DataFrame]:
    """Return a `build` that runs SQL, in which `silver/events` is the table `events`.

    Columns whose names do not occur in the text are dropped first, unless `every_column` is true:
    Spark needs seconds to analyse a query that refers to a hundred columns several times. A query
    that needs a dropped column fails; it cannot return wrong rows. No CTE may have the name of an
    input.
    """
    words = set(_WORD.findall(text))
    body = text.strip()
    rest = f", {body[5:]}" if body.startswith("WITH ") else f" {body}"

    def build(frames: Frames) -> DataFrame:
        given = []
        for name, frame in frames.items():
            short = name.rpartition("/")[2]
            used = [f"`{column}`" for column in frame.columns if every_column or column in words]
            given.append(f"{short} AS (SELECT {', '.join(used)} FROM {_view(frame)})")
        session = next(iter(frames.values())).sparkSession
        return session.sql(f"WITH {', '.join(given)}{rest}")

    return build
