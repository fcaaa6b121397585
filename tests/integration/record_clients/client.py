"""The interface of the clients that tests use during faults; `retried` repeats failed calls."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol, TypeVar

from tests.integration.login_clients import Login

T = TypeVar("T")
# Longer than the restart of a broker on a busy machine.
DEADLINE_S: Final = 120.0
DEADLINE_MS: Final = int(DEADLINE_S * 1000)
REQUEST_TIMEOUT_S: Final = 15.0
_BACKOFF_S: Final = 0.2


class RetriableError(Exception):
    """Raised instead of a client's own error if the call can be retried."""


class Producer(Protocol):
    """An idempotent producer with acks=all. It remembers what brokers acknowledged."""

    acknowledged: dict[tuple[int, int], bytes]
    """Values by partition and offset."""
    failures: list[object]
    """The errors of records that the client stopped trying to send."""

    def send(self, partition: int, value: bytes) -> None:
        """Send one record; do not wait for its acknowledgement."""

    def flush(self) -> None:
        """Wait until every record was acknowledged or failed."""

    def close(self) -> None:
        """Release the client."""


class Consumer(Protocol):
    """A member of a group; it commits only when `commit` is called. Not thread-safe."""

    def poll(self) -> list[tuple[int, int, bytes]]:
        """Return partition, offset and value of some records; wait a moment if there are none.

        Raises:
            RetriableError: the client could not reach a broker.
        """

    def assignment(self) -> set[int]:
        """Return the partitions that this member owns."""

    def seek(self, partition: int, offset: int) -> None:
        """Continue at an offset."""

    def commit(self) -> None:
        """Commit the position.

        Raises:
            RetriableError: the coordinator is not available, or the group rebalances.
        """

    def close(self) -> None:
        """Leave the group."""


class RecordClient(abc.ABC):
    """One client library. Calls of the admin client raise RetriableError for a retriable error."""

    def __init__(self, login: Login, topic: str, group: str) -> None:
        self.login = login
        self.topic = topic
        self.group = group

    @abc.abstractmethod
    def producer(self) -> Producer:
        """Return a new producer."""

    @abc.abstractmethod
    def consumer(self, name: str) -> Consumer:
        """Return a new member of the group, with this client id."""

    @abc.abstractmethod
    def list_groups(self) -> set[str]:
        """Return the ids of all groups."""

    @abc.abstractmethod
    def describe_group(self) -> tuple[str, set[str]]:
        """Return the group's state and the client ids of its members."""

    @abc.abstractmethod
    def committed(self) -> dict[int, int]:
        """Return the group's committed offsets."""

    @abc.abstractmethod
    def reset_offsets(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets for a group without members."""

    @abc.abstractmethod
    def delete_offsets(self, partitions: Collection[int]) -> None:
        """Delete committed offsets."""

    @abc.abstractmethod
    def delete_group(self) -> None:
        """Delete the group. A missing group is no error: an earlier try may have deleted it."""

    @abc.abstractmethod
    def delete_records(self, partition: int, before: int) -> int:
        """Delete the records before an offset; return the partition's low watermark."""


def retried(call: Callable[[], T]) -> T:
    """Return the result of a call. Repeat it after RetriableError until the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return call()
        except RetriableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_BACKOFF_S)
