"""Every sealed line was read and is accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import History
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K6",
    name="lines_are_conserved",
    statement="every sealed line was read and is accounted for",
    witnesses=(),
    row="files with lines",
    key="<path>",
    gap_blocks_pass=False,
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every file with lines; a missing file is a gap, and is not judged here."""
    for account in history.evidence.accounts:
        if account.accounted == account.lines:
            if account.lines:
                yield None
            continue
        sentence = (
            f"{account.path} has {account.lines} lines, but {account.accounted} are accounted for"
        )
        yield SPEC.violation(account.path, [f"file/{account.path}"], sentence)


INPUTS: Final = ("gold/accounting",)
SQL: Final = """
SELECT run, CASE WHEN accounted <> sealed THEN file END AS key,
  array(concat('file/', file)) AS rows,
  concat(file, ' has ', sealed, ' lines, but ', accounted, ' are accounted for') AS sentence
FROM accounting WHERE is_there AND (sealed > 0 OR accounted > 0)
"""
