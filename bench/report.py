"""The input and the output of a benchmark: a `Plan`, and lines of text.

Ratios within one run are more reliable than absolute figures, so most benchmarks alternate
between the things that they compare (A B A B) and report a ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

RESULTS: Final = Path(__file__).parent / "results.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure. `quick`: fewer rounds; a large state is smaller or left out."""

    quick: bool = False

    def rounds(self, full: int) -> int:
        """Return the number of rounds, `full` or fewer."""
        return max(2, full // 2) if self.quick else full


def record(name: str, command: str, lines: Sequence[str], path: Path = RESULTS) -> None:
    """Replace a benchmark's results in the file from which `docs/benchmarks.md` is generated.

    What the results should be is kept: it is written by hand, as `aim` of a result.
    """
    recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    before = recorded.get(name, {"results": []})["results"]
    aims = [f"{row['figure']}: {row['aim']}" for row in before if "aim" in row]
    results: list[dict[str, str]] = [{"figure": line} for line in lines]
    if results and aims:
        results[0]["aim"] = "; ".join(aims)
    memory_gib = psutil.virtual_memory().total / (1 << 30)
    recorded[name] = {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} processors, {memory_gib:.0f} GiB",
        "results": results,
    }
    path.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def progress(text: str) -> None:
    """Print progress to standard error."""
    print(f"... {text}", file=sys.stderr, flush=True)


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def spread(values: Sequence[float], unit: str, digits: int = 0) -> str:
    """Return `median unit (minimum to maximum)`."""
    least, most = min(values), max(values)
    return f"{median(values):.{digits}f} {unit} ({least:.{digits}f} to {most:.{digits}f})"
