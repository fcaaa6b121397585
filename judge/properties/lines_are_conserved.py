"""K6: every sealed line was read and is accounted for."""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History
from judge.properties.violations import violation


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
        yield violation("K6", account.path, [f"file/{account.path}"], sentence)
