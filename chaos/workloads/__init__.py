"""Every workload. To add one: a file here, and a line in WORKLOADS."""

from __future__ import annotations

from typing import Final

from chaos.workload import Workload
from chaos.workloads.bursts import BURSTS
from chaos.workloads.controllers_broker import CONTROLLERS_BROKER
from chaos.workloads.every_write_api import EVERY_WRITE_API
from chaos.workloads.forwarded_principals import FORWARDED_PRINCIPALS
from chaos.workloads.large_requests import LARGE_REQUESTS
from chaos.workloads.many_topics import MANY_TOPICS
from chaos.workloads.mixed_requests import MIXED_REQUESTS
from chaos.workloads.one_object import ONE_OBJECT
from chaos.workloads.one_topic import ONE_TOPIC
from chaos.workloads.read_after_write import READ_AFTER_WRITE
from chaos.workloads.topics import TOPICS

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
