"""Generates the page about bugs of Kafka that can be reproduced."""

from __future__ import annotations

from typing import Final

from chaos.kafka_bugs import KAFKA_BUGS, KafkaBug
from tools.generate_reference import MARK

_INTRODUCTION: Final = """\
Kafka's controller and its forwarding once had most of these bugs; the others are similar bugs. For
each bug there is a faulty part of a node (`node/kafka_bugs.py`, `node/seeded_bugs.py`). Only tests
and `bridgehead chaos run` use these parts.

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
    return "\n".join([*page, *map(_row, KAFKA_BUGS), ""])


def _row(bug: KafkaBug) -> str:
    cells = (bug.issue, bug.happened, f"`{bug.command}`", ", ".join(bug.found_by))
    return f"| {' | '.join(cells)} |"
