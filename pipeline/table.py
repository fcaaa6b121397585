"""What a table is: a name, a schema, what it is made of, and what every row of it must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

Frames = Mapping[str, DataFrame]


def struct_type(ddl: str) -> T.StructType:
    """Return a schema; Spark reads DDL only while a session is open."""
    read = T.StructType.fromDDL(ddl)
    assert isinstance(read, T.StructType)
    return read


def local_frame(spark: SparkSession, rows: Sequence[Sequence[object]], ddl: str) -> DataFrame:
    """Return a few rows as a frame that Spark's plans hold.

    Questions about them are answered while a query is planned, and what joins none of them is not
    even read. `createDataFrame` would ask workers of Python for them, at every use again.
    """
    schema = struct_type(ddl)
    session = spark._jsparkSession
    held = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    if rows:
        text = json.dumps([dict(zip(schema.names, row, strict=True)) for row in rows])
        listed = F.from_json(F.lit(text), T.ArrayType(schema))
        held = spark.range(1).select(F.inline(listed))._jdf.collectAsList()
    return DataFrame(session.createDataFrame(held, session.parseDataType(schema.json())), spark)


class PromiseBrokenError(Exception):
    """A table is not what it promises to be: a mistake of the pipeline, not of the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One output. `build` is pure: data frames in, a data frame out, `run` among its columns."""

    name: str  # layer/name, which is its folder
    inputs: Sequence[str]
    schema: str  # DDL, with `run` in front
    build: Callable[[Frames], DataFrame]
    # Looks at the rows once they are written; returns what is to stand there instead, or None.
    settle: Callable[[Frames, DataFrame], DataFrame | None] | None = None
    # A sentence to the SQL condition that every row must meet.
    expectations: Mapping[str, str] = field(default_factory=dict)

    def make(self, frames: Frames) -> DataFrame:
        """Build, and select exactly the schema's columns.

        Raises:
            PromiseBrokenError: the types are others than the schema says.
        """
        frame = self.build({name: frames[name] for name in self.inputs})
        frame = frame.select(*(F.col(name) for name in self.columns()))
        expected = struct_type(self.schema)
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        if found != [(field.name, field.dataType.simpleString()) for field in expected]:
            raise PromiseBrokenError(f"{self.name} is {found}, it should be {self.schema}")
        return frame

    def check(self, made: DataFrame) -> None:
        """Hold every row against what the table promises, in one pass.

        Raises:
            PromiseBrokenError: some row breaks an expectation; null counts as broken.
        """
        broken = [
            F.count(F.when(~F.coalesce(F.expr(condition), F.lit(False)), True)).alias(str(at))
            for at, condition in enumerate(self.expectations.values())
        ]
        if not broken:
            return
        counts = made.agg(*broken).collect()[0]
        for at, sentence in enumerate(self.expectations):
            if counts[at]:
                raise PromiseBrokenError(f"{self.name}: {counts[at]} rows break '{sentence}'")

    def columns(self) -> list[str]:
        """Return the names of its columns, in order. A session must be open."""
        return list(struct_type(self.schema).names)


def query(text: str) -> Callable[[Frames], DataFrame]:
    """Return a `build` that asks in SQL; tables are named by the last part of their names."""

    def build(frames: Frames) -> DataFrame:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name.rpartition("/")[2])
        return next(iter(frames.values())).sparkSession.sql(text)

    return build
