"""The rows of docs/kips.md: the statements of the five KIPs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kips.md"
IMPLEMENTED = ("both", "drafted", "shipped")


class Row(NamedTuple):
    """A statement: its dialect, where it is implemented, and its tests or why it has none."""

    number: str
    statement: str
    dialect: str
    where: str
    shown_by: str

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that show the statement: `path::function`."""
        return tuple(re.findall(r"`(tests/\S+::\w+)`", self.shown_by))

    @property
    def is_implemented(self) -> bool:
        """True if some dialect follows the statement."""
        return self.dialect in IMPLEMENTED

    @property
    def deviation(self) -> tuple[str, str] | None:
        """The statement without its deviation, and the deviation; None if there is none."""
        found = re.fullmatch(r"(.*?)\.? Deviations?: (.*)", self.statement)
        return (found[1], found[2]) if found else None


def rows() -> list[Row]:
    """Every row, in the order of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines if line[:2] == "| "]
    return [
        Row(each[0].removeprefix("| "), *each[1:4], each[4].removesuffix(" |"))
        for each in cells
        if each[0].removeprefix("| ")[:1].isdigit()
    ]
