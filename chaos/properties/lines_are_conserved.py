"""K6: every line that was sealed was read, and is accounted for."""

from __future__ import annotations

from typing import Final

from chaos.history import History
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every file that has lines; one that is gone is a hole, and not judged here."""
    violations = []
    for account in history.evidence.accounts:
        if account.accounted == account.lines:
            continue
        sentence = (
            f"{account.path} has {account.lines} lines and {account.accounted} are accounted for"
        )
        violations.append(violation("K6", account.path, [f"file/{account.path}"], sentence))
    judged = sum(1 for account in history.evidence.accounts if account.lines)
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("K6", check)
