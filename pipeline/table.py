"""A table: its name, schema and inputs, and the conditions that every row must meet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

Frames = Mapping[str, DataFrame]


def struct_type(ddl: str) -> T.StructType:
    """Parse DDL. A session must be open."""
    read = T.StructType.fromDDL(ddl)
    assert isinstance(read, T.StructType)
    return read


def local_frame(spark: SparkSession, rows: Sequence[Sequence[object]], ddl: str) -> DataFrame:
    """Return a small frame whose rows are constants in Spark's plan.

    Spark's planner evaluates these rows, so it can skip tables that join none of them. A frame
    from `createDataFrame` would start Python workers at every use.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One output. `build` is pure: data frames in, a data frame out, `run` among its columns."""

    name: str  # layer/name, also its folder
    inputs: Sequence[str]
    schema: str  # DDL, with `run` in front
    build: Callable[[Frames], DataFrame]
    # Takes the written rows and returns rows that replace them, or None to keep them.
    finalize: Callable[[Frames, DataFrame], DataFrame | None] | None = None
    # Description to SQL condition. Every row must satisfy all conditions.
    expectations: Mapping[str, str] = field(default_factory=dict)

    def make(self, frames: Frames) -> DataFrame:
        """Return the built frame with exactly the schema's columns.

        Raises:
            TableError: the types differ from the schema.
        """
        frame = self.build({name: frames[name] for name in self.inputs})
        frame = frame.select(*(F.col(name) for name in self.columns()))
        expected = struct_type(self.schema)
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        if found != [(field.name, field.dataType.simpleString()) for field in expected]:
            raise TableError(f"{self.name} has columns {found}, expected {self.schema}")
        return frame

    def check(self, built: DataFrame) -> None:
        """Check every row against all expectations, in one pass.

        Raises:
            TableError: a row violates an expectation. A null condition counts as violated.
        """
        violated = [
            F.count(F.when(~F.coalesce(F.expr(condition), F.lit(False)), True)).alias(str(at))
            for at, condition in enumerate(self.expectations.values())
        ]
        if not violated:
            return
        counts = built.agg(*violated).collect()[0]
        for at, description in enumerate(self.expectations):
            if counts[at]:
                raise TableError(f"{self.name}: {counts[at]} rows violate '{description}'")

    def columns(self) -> list[str]:
        """Return the names of its columns, in order. A session must be open."""
        return list(struct_type(self.schema).names)


def query(text: str) -> Callable[[Frames], DataFrame]:
    """Return a `build` that runs SQL. `silver/events` is the table `events` there."""

    def build(frames: Frames) -> DataFrame:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name.rpartition("/")[2])
        return next(iter(frames.values())).sparkSession.sql(text)

    return build
