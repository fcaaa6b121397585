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
)
