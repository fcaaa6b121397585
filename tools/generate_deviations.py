"""Generates docs/deviations.md from the rows of docs/kips.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tools.kip_rows import Row, rows

_MARK: Final = "<!-- Generated from kips.md (`make docs`); edit that page instead. -->"
_INTRODUCTION: Final = """\
This page lists where Bridgehead differs from the five KIPs that it implements, and why. The row
numbers are those of [kips](kips.md), which lists all statements with their tests.
[differences](differences.md) lists the differences from Kafka 3.9.1.\
"""
_IN_PART: Final = "Bridgehead follows only a part of these statements."
_NOT_FOLLOWED: Final = "Bridgehead follows no part of these statements."
_REPLACED: Final = """\
Each of these statements was struck out, rejected, left for later or superseded. The last column
names what there is instead.\
"""
_DRAFTED: Final = """\
These statements are true only for a listener with `bridgehead.dialect=drafted`. Kafka implemented
them differently or not at all. A shipped listener behaves like Kafka 3.9.1, because real clients
expect that.\
"""
_SHIPPED: Final = """\
These statements are true only for a listener with `bridgehead.dialect=shipped`. Such a listener
behaves like Kafka 3.9.1, even where Kafka differs from a KIP.\
"""
_UNBUILT: Final = "No code implements these statements yet."


def deviations_page() -> str:
    """Return the page."""
    every = rows()
    parted = [(row, row.deviation) for row in every]
    page = ["# Deviations from the KIPs", "", _MARK, "", _INTRODUCTION]
    page += _section(
        "Followed in part",
        _IN_PART,
        ("row", "the KIP", "deviation and reason"),
        [(row.number, *found) for row, found in parted if found is not None],
    )
    page += _section(
        "Not followed", _NOT_FOLLOWED, ("row", "the KIP", "reason"), _without(every, "not followed")
    )
    page += _section(
        "Replaced",
        _REPLACED,
        ("row", "the KIP", "replaced by"),
        _without(every, "replaced by"),
    )
    page += _section(
        "On drafted listeners only", _DRAFTED, ("row", "the KIP"), _of(every, "drafted")
    )
    page += _section(
        "On shipped listeners only",
        _SHIPPED,
        ("row", "behaviour of a shipped listener"),
        _of(every, "shipped"),
    )
    page += _section(
        "Not built yet", _UNBUILT, ("row", "the KIP"), _without(every, "not built yet")
    )
    return "\n".join([*page, ""])


def _without(every: Iterable[Row], word: str) -> list[Sequence[str]]:
    found = [(row, *row.shown_by.partition(": ")) for row in every]
    return [
        (row.number, row.statement, reason) if reason else (row.number, row.statement)
        for row, kind, _, reason in found
        if kind == word
    ]


def _of(every: Iterable[Row], dialect: str) -> list[Sequence[str]]:
    return [(row.number, row.statement) for row in every if row.dialect == dialect]


def _section(
    title: str, text: str, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> list[str]:
    if not cells:
        return []
    lines = [columns, ["---"] * len(columns), *cells]
    return ["", f"## {title}", "", text, "", *(f"| {' | '.join(line)} |" for line in lines)]
