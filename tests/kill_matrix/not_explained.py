"""What the specification says about runs with seeded bugs of the protocol's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

# A scenario, and the bugs of its nodes. No behaviour of the specification explains the run.
NOT_EXPLAINED: Final[Sequence[tuple[str, ...]]] = (
    ("controller_pause_past_session", "fence_off"),
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


class Explained(NamedTuple):
    """A bug with which the specification explains each request alone."""

    bug: str
    why: str
    scenario: str = ""
    """It shows this in the simulated tier. "": the replay of a counterexample shows it, or no
    simulated scenario finds the bug."""


_RESIGNS = "A controller may resign at any time."
_TIMES = "The specification has no clocks: a session may end, and a request time out, at any time."
EXPLAINED: Final[Sequence[Explained]] = (
    Explained(
        "never_superseded",
        "A controller may be late to resign, because the fence rejects its commits. K7 limits how "
        "late.",
        "controller_znode_deleted",
    ),
    Explained("resigns_early", _RESIGNS, "quiet_sea"),
    Explained("resigns_when_late", _RESIGNS, "controller_pause_within_session"),
    Explained("wall_clock_deadlines", _TIMES, "wall_clock_jumps"),
    Explained("leaves_sessions_open", _TIMES, "polite_stop"),
    Explained("pings_while_blocked", _TIMES),
    Explained("stays_at_one_member", "ZooKeeper is one value, without members."),
    Explained("reports_highest_floor", "Floors are not recorded."),
    Explained(
        "takes_raised_floors_for_stored",
        "A slice has one request, and the floor is of others. A small run is rejected as a whole.",
        "random_faults",
    ),
    Explained(
        "responds_without_lease",
        "Whether the lease holds is a matter of time. A small run is rejected as a whole, if "
        "another controller was active before the response.",
    ),
    Explained(
        "responses_overtake",
        "A slice has one request of a connection. F4 has all of them; a small run is rejected as "
        "a whole.",
    ),
    Explained("response_before_applied", "When a broker applies a change is not in a slice."),
)
