"""Clients that create 250 topics with each request."""

from __future__ import annotations

from functools import partial

from chaos.workload import Workload
from chaos.workloads.topics import Topics

LARGE_REQUESTS = Workload(
    name="large_requests",
    does="Two clients create 250 topics with each request, and delete the topics of half of them.",
    start=partial(Topics, clients=2, topics_each=250),
)
