"""What a benchmark is given and what it hands back: `Plan` in, lines of text out.

Read first: a figure of one machine says little, a ratio of two figures of one run says more; so
every benchmark measures both sides in turns (A B A B) and reports the ratio of the medians first.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `quick`: fewer rounds and no large state; figures are rougher."""

    quick: bool = False

    def rounds(self, full: int) -> int:
        """Return how many rounds to measure where `full` are wanted."""
        return max(2, full // 2) if self.quick else full


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(f"... {text}", file=sys.stderr, flush=True)


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def spread(values: Sequence[float], unit: str, digits: int = 0) -> str:
    """Return `median unit (least to most)`."""
    least, most = min(values), max(values)
    return f"{median(values):.{digits}f} {unit} ({least:.{digits}f} to {most:.{digits}f})"
