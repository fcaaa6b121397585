"""More clients than a controller can answer at once."""

from __future__ import annotations

from functools import partial

from chaos.workload import Workload
from chaos.workloads.topics import Topics

MANY_TOPICS = Workload(
    name="many_topics",
    does="Sixty-four clients create topics through all brokers and delete half of them.",
    start=partial(Topics, clients=64),
)
