"""Clients that send at the same moments and then pause: few requests during a long fault."""

from __future__ import annotations

from functools import partial

from chaos.workload import Workload
from chaos.workloads.topics import Topics

BURSTS = Workload(
    name="bursts",
    does="Every 0.8 s eight clients create a topic each, and delete half of these topics.",
    start=partial(Topics, period_s=0.8),
)
