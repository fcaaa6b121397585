"""Frames of constants are made from rows in the Java process, not from Python's."""

from __future__ import annotations

import json
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipeline.frames import ConstantRows, json_rows

SCHEMA = StructType([StructField("run", StringType()), StructField("seq", LongType())])


def test_rows_become_objects_with_the_names_of_the_columns() -> None:
    rows = [("a", 1), ("b", None)]
    expected = [{"run": "a", "seq": 1}, {"run": "b", "seq": None}]
    assert json.loads(json_rows(["run", "seq"], rows)) == expected


@pytest.mark.parametrize("row", [("a",), ("a", 1, 2)])
def test_row_of_another_length_is_an_error(row: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        json_rows(["run", "seq"], [row])


def test_frame_has_the_collected_rows_and_the_schema() -> None:
    spark, rows = MagicMock(), MagicMock()
    frame = ConstantRows(spark).frame(SCHEMA, rows)
    session = spark._jsparkSession
    session.parseDataType.assert_called_once_with(SCHEMA.json())
    session.createDataFrame.assert_called_once_with(
        rows._jdf.collectAsList.return_value, session.parseDataType.return_value
    )
    assert frame._jdf is session.createDataFrame.return_value
    assert frame.sparkSession is spark


def test_frame_without_rows_executes_no_query() -> None:
    spark = MagicMock()
    ConstantRows(spark).frame(SCHEMA)
    empty = spark._jvm.java.util.ArrayList.return_value
    assert spark._jsparkSession.createDataFrame.call_args.args[0] is empty
    spark.range.assert_not_called()
