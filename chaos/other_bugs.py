"""Further seeded bugs that a scenario shows, with the properties that find them."""

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
        bugs=("omits_last_result",),
        scenario="kill_in_large_request",
        found_by=("D7",),
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
    SeededBug(
        bugs=("splits_the_election",),
        scenario="kill_while_loading",
        found_by=("W4",),
    ),
    SeededBug(
        bugs=("forgets_outcomes",),
        scenario="answers_lost",
        found_by=("D2", "D5", "F7"),
    ),
    SeededBug(
        bugs=("forgets_outcomes",),
        scenario="controller_killed",
        found_by=("D3", "F7"),
    ),
)
