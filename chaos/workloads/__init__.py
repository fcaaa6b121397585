"""Every workload. To add one: a file here, and a line in WORKLOADS."""

from __future__ import annotations

from typing import Final

from chaos.workload import Workload
from chaos.workloads.every_write_api import EVERY_WRITE_API
from chaos.workloads.forwarded_principals import FORWARDED_PRINCIPALS
from chaos.workloads.mixed_requests import MIXED_REQUESTS
from chaos.workloads.one_object import ONE_OBJECT
from chaos.workloads.one_topic import ONE_TOPIC
from chaos.workloads.read_after_write import READ_AFTER_WRITE
from chaos.workloads.topics import BURSTS, CONTROLLERS_BROKER, LARGE_REQUESTS, MANY_TOPICS, TOPICS

WORKLOADS: Final[tuple[Workload, ...]] = (
    TOPICS,
    MANY_TOPICS,
    BURSTS,
    CONTROLLERS_BROKER,
    ONE_TOPIC,
    ONE_OBJECT,
    MIXED_REQUESTS,
    LARGE_REQUESTS,
    EVERY_WRITE_API,
    FORWARDED_PRINCIPALS,
    READ_AFTER_WRITE,
)
