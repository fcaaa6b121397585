"""For each control of the specification, the seeded bug of nodes that leaves out the same part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Counterexample:
    """What finds the bug in the replay of the counterexample, besides the end of the replay."""

    bug: str
    violates: tuple[str, ...]
    """The properties that the judge finds violated."""
    is_explained: bool = False
    """Whether the specification explains each request of the replay alone."""


COUNTEREXAMPLES: Final[Mapping[str, Counterexample | str]] = {
    # Another client deletes /controller in this path, so W5 and W6 fail without the bug, too.
    "FENCE": Counterexample("unfenced_configs", ("W1", "W2", "W3", "W5", "W6", "D1", "D5", "R2")),
    "COUNTER": "The multi also creates the znode of its outcomes. So ZooKeeper rejects a second "
    "copy even if the counter is not checked.",
    "OUTCOMES": Counterexample("forgets_outcomes", ("D2", "D5", "F7")),
    "ATTEMPTS": "A response comes on the channel of its attempt. A channel that is broken delivers "
    "nothing, so no code has to ignore such a response.",
    "JOINS": Counterexample("executes_copies", ()),
    "RESENDS": Counterexample("assumes_commit", ("D1", "R2", "K4")),
    "ONE_ROUND": Counterexample("responds_before_commit", ("D5",)),
    "LIVES": Counterexample("ignores_incarnations", ("D1",)),
    "LOWEST": Counterexample("reports_highest_floor", (), is_explained=True),
    "STORES_FLOORS": Counterexample("forgets_floors", ("D3", "F7")),
    "FLOOR_CHECKED": Counterexample("checks_floor_once", ("D3", "F7")),
    "GRACE": Counterexample("prunes_at_once", ("D3", "F7")),
    "LEASE": Counterexample("responds_without_lease", (), is_explained=True),
    "WAITS": Counterexample("responses_overtake", ("F4",), is_explained=True),
    "APPLIED": Counterexample("response_before_applied", (), is_explained=True),
}
