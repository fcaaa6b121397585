"""SQL gets its inputs as common table expressions, without the columns that it does not name."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from pipeline.query import query, used_columns, with_inputs


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
