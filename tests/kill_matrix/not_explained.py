"""Runs with seeded bugs that no behaviour of the specification explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# A scenario, and the bugs of its nodes.
NOT_EXPLAINED: Final[Sequence[tuple[str, ...]]] = (
    ("controller_pause_past_session", "fence_off", "retry_across_sessions"),
    ("controller_killed", "unfenced_configs"),
    ("kill_while_loading", "splits_the_election"),
    ("kill_between_commit_and_reply", "forgets_outcomes"),
    ("session_stolen_in_large_request", "deletes_successors_znode"),
    ("sessions_flap", "acts_after_resigning"),
    ("sessions_flap", "reuses_image"),
    ("sessions_flap", "relays_not_controller"),
    ("sessions_flap", "counts_operations"),
    ("reply_of_commit_lost", "naive_retry"),
    ("request_of_commit_lost", "assumes_commit"),
)
