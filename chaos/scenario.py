"""A scenario as a value: who works, what breaks at which moment, and what must hold.

Values only: a tier (`chaos.local`) runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from chaos.fault import Fault
from chaos.workload import Workload

LOCAL: Final = "local"
"""The tier of real processes and a real ZooKeeper on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The cluster of a scenario."""

    brokers: int = 3
    zookeeper_members: int = 1
    session_timeout_ms: int = 2000
    properties: Mapping[str, str] = field(default_factory=dict)
    seeded_bugs: tuple[str, ...] = ()
    """Names in node/seeded_bugs.py, for a scenario that must fail."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Hold a fault for a multiple of the session timeout."""

    count: float


@dataclass(frozen=True, slots=True)
class AnotherController:
    """Hold a fault until another broker is the active controller."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Hold a fault until the clients had this many more successes."""

    count: int


@dataclass(frozen=True, slots=True)
class Once:
    """Do not hold: the fault is over when it is injected."""


Hold = Sessions | AnotherController | Acknowledged | Once


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One fault: its moment, counted in successes of the clients, and how long it is held."""

    fault: Fault
    after: int = 40
    """Successes since the fault before it was healed; the seed adds up to a quarter."""
    hold: Hold = field(default_factory=Once)
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the run must show besides the properties of docs/properties.md."""

    elections: tuple[int, int | None]
    """The least and the greatest number of elections after the first fault (None: any)."""
    open_max: int | None = None
    """The greatest number of operations without a definite result (None: any)."""
    violates: tuple[str, ...] = ()
    """The properties that must fail, if the topology has seeded bugs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario."""

    name: str
    aim: str
    """What must hold, in one sentence."""
    bug: str
    """The bug that would break it: issues of Kafka and others, or a seeded bug."""
    workload: Workload
    steps: tuple[Step, ...]
    expects: Expectation
    topology: Topology = field(default_factory=Topology)
    after: int = 40
    """Successes that the clients need after the last fault."""
    tiers: tuple[str, ...] = (LOCAL,)
