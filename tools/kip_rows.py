"""The rows of docs/kips.md: the statements of the five KIPs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kips.md"
IMPLEMENTED = ("both", "drafted", "shipped")


class Row(NamedTuple):
    """A statement: its dialect, where it is implemented, and its tests or why it has none.

    `deviation` says what is different if the statement is followed only in part.
    """

    number: str
    statement: str
    dialect: str
    where: str
    shown_by: str
    deviation: str = ""

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that show the statement: `path::function`."""
        return tuple(re.findall(r"`(tests/\S+::\w+)`", self.shown_by))

    @property
    def is_implemented(self) -> bool:
        """True if some dialect follows the statement."""
        return self.dialect in IMPLEMENTED


def rows() -> list[Row]:
    """Every row, in the order of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    deviations = dict(re.findall(r"^- (\d+\.\d+): (.*)\.$", "\n".join(lines), re.MULTILINE))
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines if line[:2] == "| "]
    return [_row(deviations, *line) for line in cells if line[0].removeprefix("| ")[:1].isdigit()]


def _row(
    deviations: dict[str, str],
    number: str,
    statement: str,
    dialect: str,
    where: str,
    shown_by: str,
) -> Row:
    number = number.removeprefix("| ")
    deviation = deviations.get(number, "")
    return Row(number, statement, dialect, where, shown_by.removesuffix(" |"), deviation)
