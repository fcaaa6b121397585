"""More seeded bugs, each with a scenario that finds it but does not list it in `catches`."""

from __future__ import annotations

from typing import Final

from chaos.seeded_bug import SeededBug

OTHER_BUGS: Final[tuple[SeededBug, ...]] = (
    SeededBug(
        bugs=("ignores_validate_only",),
        scenario="controller_killed",
        found_by=("D9",),
    ),
    SeededBug(
        bugs=("counts_attempts",),
        scenario="sessions_flap",
        found_by=("K1",),
    ),
    SeededBug(
        bugs=("repeats_updates",),
        scenario="reads_in_failover",
        found_by=("R2", "R3"),
    ),
    SeededBug(
        bugs=("counts_operations",),
        scenario="sessions_flap",
        found_by=("R6",),
    ),
)
