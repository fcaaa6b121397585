"""What the three files of methods have in common: waiting, names, and why a method is left out."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from bridgehead.kafka_wire.headers import decode_response_header
from bridgehead.kafka_wire.json_form import decode_body
from chaos.connection import Connection, request_bytes

T = TypeVar("T")
WITHIN_S: Final = 30.0
# Why a method is left alone: the API that it needs, or words.
Reason = int | str
OFFSET_COMMIT, LEAVE_GROUP, WRITE_TXN_MARKERS = 8, 13, 27
DESCRIBE_QUORUM, CLIENT_METRICS, DESCRIBE_TOPIC_PARTITIONS = 55, 74, 75
_METADATA, _VERSION = 3, 4
_numbers = itertools.count()


def fresh(prefix: str) -> str:
    """Return a name that nothing has yet."""
    return f"{prefix}-{next(_numbers)}"


def until(look: Callable[[], T], is_good: Callable[[T], bool]) -> T:
    """Look again until it is good; what a broker may not know yet, it knows soon."""
    deadline = time.monotonic() + WITHIN_S
    while not is_good(seen := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_good(seen), seen
    return seen


def soon(ask: Callable[[], T], *meanwhile: type[Exception]) -> T:
    """Ask again while the answer is one of these exceptions."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            return ask()
        except meanwhile:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def known_everywhere(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Wait until every broker knows so many partitions of a topic: a client asks any of them."""
    for address in bootstrap_servers.split(","):
        connection = Connection(address)
        until(partial(_partitions_at, connection, topic), partial(operator.eq, partitions))
        connection.close()


def _partitions_at(connection: Connection, topic: str) -> int:
    body = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
    answer = connection.ask(request_bytes(_METADATA, _VERSION, body))
    assert isinstance(answer, bytes), answer
    _, at = decode_response_header(_METADATA, _VERSION, answer)
    (told,) = decode_body(_METADATA, "response", _VERSION, answer[at:])["topics"]
    return sum(each["errorCode"] == 0 for each in told["partitions"])
