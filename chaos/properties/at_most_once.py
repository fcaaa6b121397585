"""D3: no element of a request takes effect twice, however often the request was sent."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from chaos.history import History
from chaos.verdicts import Finding, Property


def check(history: History) -> Finding:
    """Judge every element that was committed."""
    commits: dict[tuple[object, str], list[int]] = defaultdict(list)
    for outcome in history.outcomes:
        commits[outcome.identity, outcome.element].append(outcome.zxid)
    violations = tuple(
        f"{element} of request {identity} was committed at {', '.join(map(str, zxids))}"
        for (identity, element), zxids in commits.items()
        if len(zxids) > 1
    )
    return Finding(len(commits), violations)


PROPERTY: Final = Property(
    "D3",
    "at_most_once",
    "a request that was sent twice took effect once",
    check,
    argues_from_absence=False,
)
