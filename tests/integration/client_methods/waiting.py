"""Helpers of the client classes. They wait, and they choose unused names."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from bridgehead.raw_client.blocking import Connection
from tests.integration.processes import wait_until

T = TypeVar("T")
WITHIN_S: Final = 30.0
# Why the tests do not call a method: the key of the unserved API that it needs, or a text.
Reason = int | str
WRITE_TXN_MARKERS = 27
DESCRIBE_QUORUM, CLIENT_METRICS, DESCRIBE_TOPIC_PARTITIONS = 55, 74, 75
_METADATA, _VERSION = 3, 4
_numbers = itertools.count()


def fresh(prefix: str) -> str:
    """Return an unused name."""
    return f"{prefix}-{next(_numbers)}"


def soon(call: Callable[[], T], *transient: type[Exception]) -> T:
    """Return the result of a call; repeat it up to 30 s while it raises `transient` exceptions."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            return call()
        except transient:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def known_everywhere(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Wait until every broker knows a topic's partitions, because a client may ask any broker."""
    for address in bootstrap_servers.split(","):
        with Connection(address) as connection:
            wait_until(partial(_partitions_at, connection, topic), partial(operator.eq, partitions))


def _partitions_at(connection: Connection, topic: str) -> int:
    body = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
    (described_topic,) = connection.call(_METADATA, _VERSION, body)["topics"]
    return sum(partition["errorCode"] == 0 for partition in described_topic["partitions"])
