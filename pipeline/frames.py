"""Small frames of constants, and the types of columns.

`ConstantRows` is the pipeline's only use of PySpark's internal Java session to make a frame.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

Frames = Mapping[str, DataFrame]
_empty: WeakSet[DataFrame] = WeakSet()


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
    if not rows:
        frame = ConstantRows(spark).frame(schema)
        _empty.add(frame)
        return frame
    listed = F.from_json(F.lit(json_rows(schema.names, rows)), T.ArrayType(schema))
    return ConstantRows(spark).frame(schema, spark.range(1).select(F.inline(listed)))


def has_no_rows(frame: DataFrame) -> bool:
    """Return whether a frame is known to be empty, without a query."""
    return frame in _empty


def json_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as a JSON array of objects.

    Raises:
        ValueError: a row has more or fewer values than there are names.
    """
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows])


class ConstantRows:
    """Makes frames from rows that are in the driver's Java process.

    PySpark's public `createDataFrame` takes only Python's rows. Spark's own takes a Java list, and
    is reachable only through `_jsparkSession`, `_jvm` and `_jdf`.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session = spark._jsparkSession

    def frame(self, schema: T.StructType, rows: DataFrame | None = None) -> DataFrame:
        """Execute the query of `rows`; return a frame that has the resulting rows as constants."""
        if rows is None:
            java_rows = self._spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        else:
            java_rows = rows._jdf.collectAsList()
        java_schema = self._session.parseDataType(schema.json())
        return DataFrame(self._session.createDataFrame(java_rows, java_schema), self._spark)
