"""Clients that use only the controller's broker, so no other broker resends their requests."""

from __future__ import annotations

from functools import partial

from chaos.workload import Workload
from chaos.workloads.topics import Topics

CONTROLLERS_BROKER = Workload(
    name="controllers_broker",
    does="Sixty-four clients create topics through the broker that is the controller at the start, "
    "and delete half of them.",
    start=partial(Topics, clients=64, controllers_broker=True),
)
