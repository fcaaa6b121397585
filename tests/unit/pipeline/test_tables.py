"""The registry of tables: each gold table is in the file of its name, and follows its inputs."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib import import_module
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from event_log.events import EVENT_KINDS
from judge.properties import PROPERTIES
from pipeline.frames import ConstantRows, json_rows
from pipeline.query import query, used_columns, with_inputs
from pipeline.run import TABLES
from pipeline.silver.events import OF_KINDS
from pipeline.sources import SOURCES
from pipeline.table import Table

GOLD = [table for table in TABLES if table.name.startswith("gold/")]


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.name)
def test_gold_table_is_in_the_file_of_its_name(table: Table) -> None:
    name = table.name.split("/")[1]  # gold/findings/W1 is one of the tables in findings.py
    value = getattr(import_module(f"pipeline.gold.{name}"), name.upper())
    assert table is value or table in value


def test_each_kind_of_event_has_a_table_with_its_own_columns() -> None:
    assert [table.name for table in OF_KINDS] == [f"silver/{kind}" for kind in EVENT_KINDS]
    common = {"run", "file", "line_number", "source", "seq", "mono_ns", "wall_ms", "node", "boot"}
    for table, event in zip(OF_KINDS, EVENT_KINDS.values(), strict=True):
        columns = re.findall(r"(?:^|, )`?(\w+)`? [A-Z]+", re.sub(r"<[^>]*>+", "", table.schema))
        assert set(columns) == {*common, "host_boot_id", *(field.name for field in fields(event))}


@pytest.mark.parametrize("of", PROPERTIES, ids=lambda of: of.SPEC.id)
def test_a_property_reads_only_tables_that_its_query_names(of: Any) -> None:
    named = set(re.findall(r"(?:FROM|JOIN) (\w+)", of.SQL))
    assert {name.rpartition("/")[2] for name in of.INPUTS} <= named


def test_table_comes_after_its_inputs() -> None:
    built = set(SOURCES)
    for table in TABLES:
        assert built.issuperset(table.inputs), table.name
        built.add(table.name)


# Frames of constants are made from rows in the Java process, not from Python's.

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


# SQL gets its inputs as common table expressions, without the columns that it does not name.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM events", "WITH events AS (SELECT 1) SELECT * FROM events"),
        (
            "\nWITH late AS (SELECT * FROM events)\nSELECT * FROM late\n",
            "WITH events AS (SELECT 1), late AS (SELECT * FROM events)\nSELECT * FROM late",
        ),
        # A word that only begins like the keyword.
        ("WITHIN", "WITH events AS (SELECT 1) WITHIN"),
    ],
)
def test_inputs_come_before_the_querys_own_expressions(text: str, expected: str) -> None:
    assert with_inputs(text, {"events": "SELECT 1"}) == expected


def test_all_inputs_are_named_in_their_order() -> None:
    text = with_inputs("SELECT 3", {"a": "SELECT 1", "b": "SELECT 2"})
    assert text == "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 3"


def test_only_columns_that_occur_as_whole_words_are_used() -> None:
    text = "SELECT e.run, count(node) FROM events e WHERE wall_ms > 0 AND s = 'boot'"
    columns = ["run", "node", "wall", "ms", "wall_ms", "boot", "seq"]
    assert used_columns(text, columns) == ["run", "node", "wall_ms", "boot"]


@pytest.mark.parametrize(("every_column", "listed"), [(False, "`run`"), (True, "`run`, `seq`")])
def test_query_selects_from_one_view_of_each_frame(every_column: bool, listed: str) -> None:
    frame = MagicMock(columns=["run", "seq"])
    build = query("SELECT run FROM events", every_column=every_column)
    assert build({"silver/events": frame}) is build({"silver/events": frame})
    ((view,), _) = frame.createOrReplaceTempView.call_args
    frame.createOrReplaceTempView.assert_called_once()
    frame.sparkSession.sql.assert_called_with(
        f"WITH events AS (SELECT {listed} FROM {view}) SELECT run FROM events"
    )
