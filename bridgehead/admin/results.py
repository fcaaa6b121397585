"""`Try` of KIP-117, and values that several calls share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from bridgehead.admin.errors import AdminError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Try(Generic[T]):
    """A value or an error (KIP-117), so that one failure does not hide the other results.

    >>> Try.new_value(3).get()
    3
    """

    _value: T | None
    error: AdminError | None

    @staticmethod
    def new_value(value: T) -> Try[T]:
        """Return a success."""
        return Try(value, None)

    @staticmethod
    def new_error(error: AdminError) -> Try[T]:
        """Return a failure."""
        return Try(None, error)

    def get(self) -> T:
        """Return the value. Raises the error of a failure."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]  # without an error there is a value

    @property
    def is_success(self) -> bool:
        """True if there is a value."""
        return self.error is None

    @property
    def is_failure(self) -> bool:
        """True if there is an error."""
        return self.error is not None


DONE: Final[Try[None]] = Try(None, None)  # the success of an operation that returns no value


class Node(NamedTuple):
    """A broker, with the address of the listener that the client uses."""

    id: int
    host: str
    port: int
    rack: str | None = None


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int
