"""Exit codes of judges, as in bridgehead/exit_codes.py, which judges must not import."""

from __future__ import annotations

from typing import Final

FAILED: Final = 1
UNDECIDED: Final = 3
CANNOT_RUN: Final = 4
INTERRUPTED: Final = 130
