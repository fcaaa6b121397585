"""The progress of a pipeline whose output is not a terminal, as in `docker compose run -T`."""

from __future__ import annotations

import io

from pipeline.__main__ import ProgressLines


def test_a_line_is_shown_at_most_every_five_seconds() -> None:
    output = io.StringIO()
    lines = ProgressLines(output)
    for second in range(0, 13, 2):
        lines.show("events", second, 44, float(second))
    assert output.getvalue().splitlines() == [
        "events: 6 of 44 tables after 6 s",
        "events: 12 of 44 tables after 12 s",
    ]
