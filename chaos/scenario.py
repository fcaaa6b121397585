"""A scenario as a value: its workload, its faults and when they occur, and what must hold.

There are only values here; the tiers (`chaos.local`, `chaos.simulated`) run them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from chaos.fault import Fault
from chaos.workload import Workload

LOCAL: Final = "local"
"""The tier of real processes and a real ZooKeeper on this machine."""
SIMULATED: Final = "simulated"
"""The tier of simulated processes in virtual time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The cluster of a scenario."""

    brokers: int = 3
    zookeeper_members: int = 1
    session_timeout_ms: int = 2000
    properties: Mapping[str, str] = field(default_factory=dict)
    seeded_bugs: tuple[str, ...] = ()
    """Names in chaos.bugs.BUGS, for a scenario that must violate properties."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Hold a fault for a multiple of the session timeout."""

    count: float


@dataclass(frozen=True, slots=True)
class AnotherController:
    """Hold a fault until another broker is the active controller."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Hold a fault until the clients have had this many further successes."""

    count: int


@dataclass(frozen=True, slots=True)
class Once:
    """Do not hold the fault: heal it as soon as it is injected."""


Hold = Sessions | AnotherController | Acknowledged | Once


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One fault: its moment, counted in successes of the clients, and how long it is held."""

    fault: Fault
    after: int = 40
    """The number of successes after the previous fault is healed and before this one is injected.
    The seed increases this number by at most a quarter."""
    hold: Hold = field(default_factory=Once)
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the run must show besides the properties of docs/properties.md."""

    elections: tuple[int, int | None]
    """The least and the greatest number of elections after the first fault (None: any)."""
    open_max: int | None = None
    """The greatest number of operations without a definite result (None: any)."""
    acknowledged_min: int = 0
    """The least number of successes that the clients must have."""
    gap_max_s: float | None = None
    """The longest permitted time between two consecutive successes (None: any)."""
    judges: tuple[str, ...] = ()
    """The properties that must have something to judge. Otherwise the run is undecided."""
    violates: tuple[str, ...] = ()
    """The properties that must fail."""
    may_violate_others: bool = False
    """Whether other properties may fail as well. If so, the clients' results do not count."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The seed chooses `count` of these steps, and may choose a step more than once."""

    count: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """Seeded bugs with which a run of the scenario fails."""

    bugs: tuple[str, ...]
    """Names in chaos.bugs.BUGS. All nodes have all of them."""
    found_by: tuple[str, ...]
    """Each is a property that the run always violates, or a part of a sentence of its report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario."""

    name: str
    aim: str
    """What must hold, in one sentence."""
    bug: str
    """A bug that would violate the aim: an issue number, a short description, or both."""
    catches: Catch | str
    """Seeded bugs that prove that the scenario can fail, or the reason why there are none."""
    workload: Workload
    steps: tuple[Step, ...]
    rounds: int = 1
    """How often all steps are played."""
    expects: Expectation
    topology: Topology = field(default_factory=Topology)
    after: int = 40
    """The number of successes that the clients must have after the last fault."""
    not_simulated: str = ""
    """Why the scenario needs real processes; "" if it does not."""

    draw: Draw | None = None
    """The steps from which the seed draws; `steps` is then empty. None: `steps` is played."""

    def of_seed(self, seed: int) -> Scenario:
        """Return the scenario with the steps that the seed draws."""
        if self.draw is None:
            return self
        source = random.Random(f"steps {seed}")
        steps = tuple(source.choices(self.draw.steps, k=self.draw.count))
        return replace(self, steps=steps, draw=None)

    def with_properties(self, properties: Mapping[str, str]) -> Scenario:
        """Return the scenario with these properties of all brokers."""
        changed = {**self.topology.properties, **properties}
        return replace(self, topology=replace(self.topology, properties=changed))

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers in which the scenario runs."""
        return (LOCAL,) if self.not_simulated else (SIMULATED, LOCAL)
