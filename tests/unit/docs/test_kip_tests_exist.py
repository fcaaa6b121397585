"""docs/kips.md cites files and tests that exist, or gives a reason why there are none."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tools.kip_rows import IMPLEMENTED, ROOT, Row, rows

DIALECTS = {*IMPLEMENTED, "-"}
LEAST_ROWS = {"590": 45, "201": 45, "108": 18, "4": 70, "117": 20}  # by KIP


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_rows_of_each_kip_are_numbered_without_gaps() -> None:
    """A number that is missing or repeated shows that a row was dropped or copied."""
    for kip, least in LEAST_ROWS.items():
        numbers = [r.number for r in rows() if r.number.startswith(f"{kip}.")]
        assert numbers == [f"{kip}.{n}" for n in range(1, len(numbers) + 1)]
        assert len(numbers) >= least


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.number)
def test_each_row_cites_existing_code_or_a_reason(row: Row) -> None:
    """A row names a file and tests, or is `not built yet`, `replaced by: …`, `not followed: …`."""
    assert row.dialect in DIALECTS
    where = row.where.strip("`")
    if where != "-":
        assert (ROOT / where).is_file(), where
    if row.shown_by.startswith("`"):
        assert row.shown_by == ", ".join(f"`{test}`" for test in row.tests)
        for test in row.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), path
            assert name in functions_of(path), name
        assert where != "-"
        assert row.dialect != "-"
    else:
        word, _, reason = row.shown_by.partition(":")
        assert word in ("not built yet", "replaced by", "not followed")
        assert bool(reason.strip()) is (word != "not built yet")
