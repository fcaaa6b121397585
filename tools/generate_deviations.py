"""Generates docs/deviations.md from the rows of docs/kips.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from tools.generate_reference import MARK
from tools.kip_rows import Row, rows

_INTRODUCTION: Final = """\
This page lists where Bridgehead differs from the five KIPs that it implements, and why. The row
numbers are those of [kips](kips.md), which lists all statements with their tests.
[differences](differences.md) lists the differences from Kafka 3.9.1.\
"""
_IN_PART: Final = "Bridgehead follows only a part of these statements."
_NOT_FOLLOWED: Final = "Bridgehead follows no part of these statements."
_REPLACED: Final = """\
Each of these statements was struck out, rejected, left for later or superseded. Something else took
its place.\
"""
_OF_A_DIALECT: Final = """\
These statements of [kips](kips.md) are true only for listeners with this `bridgehead.dialect`. A
shipped listener behaves like Kafka 3.9.1, because real clients expect that. A drafted listener does
what Kafka implemented differently or not at all.\
"""
_UNBUILT: Final = "No code implements these statements yet."


def deviations_page() -> str:
    """Return the page."""
    every = rows()
    in_part = [_item(row, row.statement, row.deviation) for row in every if row.deviation]
    page = ["# Deviations from the KIPs", "", MARK, "", _INTRODUCTION]
    page += _section("Followed in part", _IN_PART, in_part)
    page += _section("Not followed", _NOT_FOLLOWED, _without(every, "not followed"))
    page += _section("Replaced", _REPLACED, _without(every, "replaced by", "instead: "))
    dialects = [f"- {name}: {_numbers(every, name)}" for name in ("drafted", "shipped")]
    page += _section("On drafted or on shipped listeners only", _OF_A_DIALECT, dialects)
    page += _section("Not built yet", _UNBUILT, _without(every, "not built yet"))
    return "\n".join([*page, ""])


def _item(row: Row, statement: str, text: str) -> str:
    """Return an item of a list: the KIP's statement in italics, and what is different."""
    return f"- {row.number}: *{statement}.* {text[:1].upper()}{text[1:]}".strip().rstrip(".") + "."


def _without(every: Iterable[Row], word: str, before: str = "") -> list[str]:
    parted = [(row, *row.shown_by.partition(": ")) for row in every]
    return [
        _item(row, row.statement, before + reason)
        for row, kind, _, reason in parted
        if kind == word
    ]


def _numbers(every: Iterable[Row], dialect: str) -> str:
    """Return the numbers of a dialect's rows; neighbours as a range, such as `4.48 to 4.60`."""
    ranges: list[str] = []
    by_kip = itertools.groupby(every, lambda row: (row.number.partition(".")[0], row.dialect))
    for (_, of_group), group in by_kip:
        if of_group == dialect:
            numbers = [row.number for row in group]
            ranges.append(" to ".join(dict.fromkeys((numbers[0], numbers[-1]))))
    return ", ".join(ranges)


def _section(title: str, text: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", text, "", *items] if items else []
