"""Clients that send at the same moments and then pause: few requests during a long fault."""

from __future__ import annotations

from functools import partial

from chaos.workload import Workload
from chaos.workloads.topics import Topics

BURSTS = Workload(
    name="bursts",
    does="Every 1.5 s six clients create a topic each, read it three times at random brokers, and "
    "delete half of these topics.",
    start=partial(Topics, clients=6, period_s=1.5, reads=3),
)
