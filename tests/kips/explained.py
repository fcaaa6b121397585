"""Generated mutants that no test can kill, or that no test should, and why.

A key is the text that `make prove-kips` prints for the mutant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXPLAINED: Final[Mapping[str, str]] = {}
