"""Generates the page about bugs of Kafka that can be reproduced."""

from __future__ import annotations

from typing import Final

from chaos.bugs import BUGS
from chaos.bugs.bug import KafkaBug
from chaos.reproduction import of_bug
from tools.generate_reference import MARK

_INTRODUCTION: Final = """\
Kafka's controller and its forwarding once had most of these bugs; the others are similar bugs. For
each bug there is a faulty part of a node (`chaos/bugs`). Only tests and `bridgehead chaos run` use
these parts.

Each command in the table runs a scenario ([chaos](chaos.md)) on nodes that have the bug. The
command exits with 1. It prints the first problems, and the `bridgehead judge` command that shows
all violated [properties](properties.md). Without `--bugs` the same scenario passes.

`make prove-bugs` runs all these commands, and scenarios with other seeded bugs. It checks that each
run of this page violates the properties in the last column. A run may violate other properties,
too.\
"""


def kafka_bugs_page() -> str:
    """Return the page."""
    page = ["# Bugs of Kafka", "", MARK, "", *_INTRODUCTION.splitlines(), ""]
    page += ["| issue | what happened | command | violated |", "|---|---|---|---|"]
    rows = [_row(bug) for bug in BUGS if isinstance(bug, KafkaBug)]
    return "\n".join([*page, *rows, ""])


def _row(bug: KafkaBug) -> str:
    run = of_bug(bug)
    assert run is not None
    cells = (bug.issue, bug.happened, f"`{run.command}`", ", ".join(run.found_by))
    return f"| {' | '.join(cells)} |"
