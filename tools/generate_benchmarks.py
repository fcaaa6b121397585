"""Generates the table of results in docs/benchmarks.md; the rest of the page is written by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.report import RESULTS

_PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_TABLE: Final = re.compile(r"(?<=\n\| command \| figure \|).*?(?=\n\n)", re.DOTALL)


def benchmarks_page() -> str:
    """Return the page with the results that `make bench ARGS=--record` kept."""
    recorded: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [" result | aim | machine, date |", "|---|---|---|---|---|"]
    rows += [row for benchmark in recorded.values() for row in _rows(benchmark)]
    return _TABLE.sub(lambda _: "\n".join(rows), _PAGE.read_text(encoding="utf-8"), count=1)


def _rows(benchmark: dict[str, Any]) -> Iterator[str]:
    """Yield a row for each result; only the first one has the command, the machine and the date."""
    first = f"`{benchmark['command']}`", f"{benchmark['machine']}, {benchmark['date']}"
    for at, result in enumerate(benchmark["results"]):
        command, where = first if at == 0 else ("", "")
        cells = command, result["figure"], result.get("result", ""), result.get("aim", ""), where
        yield f"| {' | '.join(cells)} |"
