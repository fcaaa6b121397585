"""Queries in SQL as the `build` of a table.

In a query, the table `silver/events` is `events`. Spark has no names that belong to one query only,
so each input becomes a common table expression (CTE) in front of the query's own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from pipeline.frames import Frames

_WORD: Final = re.compile(r"\w+")
_WITH: Final = "WITH "
_views: Final[WeakKeyDictionary[DataFrame, str]] = WeakKeyDictionary()
_views_made: Final = itertools.count()


def query(text: str, *, every_column: bool = False) -> Callable[[Frames], DataFrame]:
    """Return a `build` that runs SQL, in which `silver/events` is the table `events`.

    Columns whose names do not occur in the text are dropped first, unless `every_column` is true:
    Spark needs seconds to analyse a query that refers to a hundred columns several times. A query
    that needs a dropped column fails; it cannot return wrong rows. No CTE may have the name of an
    input.
    """

    def build(frames: Frames) -> DataFrame:
        inputs = {}
        for name, frame in frames.items():
            used = frame.columns if every_column else used_columns(text, frame.columns)
            listed = ", ".join(f"`{column}`" for column in used)
            inputs[name.rpartition("/")[2]] = f"SELECT {listed} FROM {_view(frame)}"
        session = next(iter(frames.values())).sparkSession
        return session.sql(with_inputs(text, inputs))

    return build


def used_columns(text: str, columns: Sequence[str]) -> list[str]:
    """Return the columns whose names occur in the text as whole words, perhaps in another role."""
    words = set(_WORD.findall(text))
    return [column for column in columns if column in words]


def with_inputs(text: str, inputs: Mapping[str, str]) -> str:
    """Return a query with one more CTE for each input, in front of its own CTEs.

    Args:
        text: `SELECT …`, or `WITH …` if the query has CTEs; white space in front is allowed.
        inputs: for each name, the query that returns the rows.
    """
    body = text.strip()
    named = ", ".join(f"{name} AS ({rows})" for name, rows in inputs.items())
    if body.startswith(_WITH):
        return f"{_WITH}{named}, {body.removeprefix(_WITH)}"
    return f"{_WITH}{named} {body}"


def _view(frame: DataFrame) -> str:
    """Return the name of the frame's view. Creating a view takes time, so a frame has only one."""
    name = _views.get(frame)
    if name is None:
        # A new name, because views belong to the session, which builds several tables at a time.
        name = f"frame_{next(_views_made)}"
        frame.createOrReplaceTempView(name)
        _views[frame] = name
    return name
