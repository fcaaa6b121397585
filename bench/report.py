"""The input and the output of a benchmark: a `Plan`, and lines of text.

Ratios within one run are more reliable than absolute figures, so most benchmarks alternate
between the things that they compare (A B A B) and report a ratio.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure. `quick`: fewer rounds; a large state is smaller or left out."""

    quick: bool = False

    def rounds(self, full: int) -> int:
        """Return the number of rounds, `full` or fewer."""
        return max(2, full // 2) if self.quick else full


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
