"""A table: its name, schema and inputs, and the conditions that every row must meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from event_log.evidence import Manifest
from pipeline.frames import Frames, struct_type


class TableError(Exception):
    """A table violates its schema or an expectation. This is a bug of the pipeline."""


class TableCheck:
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
    # False: the table is a view, so its query becomes part of its readers' queries. The first is
    # for tables on the disk, the second for tables of small evidence that are only kept in memory.
    is_stored: bool = True
    is_kept_in_memory: bool = True
    # A column: on the disk, the rows of each of its values are in a folder of their own.
    divided_by: str | None = None
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
        columns = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        if columns != [(field.name, field.dataType.simpleString()) for field in expected]:
            raise TableError(f"{self.name} has columns {columns}, expected {self.schema}")
        return frame

    def check(self, runs: Sequence[str]) -> TableCheck:
        """Return the check to run on the rows of these runs while they are written."""
        return TableCheck(self, runs)

    def columns(self) -> list[str]:
        """Return the names of the table's columns, in order. A session must be open."""
        return list(struct_type(self.schema).names)
