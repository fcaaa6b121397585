"""A call as a plan: a generator of requests and waits, which the core executes.

A plan yields a tuple of requests, which are sent at the same time, and gets one `Try` for each; or
it yields a `Wait`. Its return value is the result of the call. So a call that needs several
requests reads like a function. Plans do no I/O and have no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from bridgehead.admin.errors import (
    AdminError,
    ClientClosedError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
)
from bridgehead.admin.results import DONE, Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.schema import Array, fields_of

T = TypeVar("T")
K = TypeVar("K")
E = TypeVar("E")


class Attempt(NamedTuple):
    """One attempt to send a request.

    `timeout_ms` is how long the broker may take. The client waits longer for the response.
    """

    version: int
    dialect: str
    timeout_ms: int


class Request(NamedTuple):
    """A request before its broker and version are known.

    `build` returns the message for the version that was negotiated. The request takes the route of
    the API's row in `bridgehead.kafka_wire.apis`, unless `broker` names a broker. With
    `drafted_goes_to_controller`, this name counts on a shipped listener only. `dialect` is the
    dialect that the listener must have. `because` names the option that needs this dialect, or a
    version from `min_version` to `max_version`; error texts contain this name. `unread` names the
    arrays of the response that the call does not read. `resent` is true if another broker may have
    executed the request already.
    """

    key: ApiKey
    build: Callable[[Attempt], Any]
    broker: int | None = None
    min_version: int = 0
    max_version: int | None = None
    dialect: str | None = None
    because: str = ""
    unread: tuple[str, ...] = ()
    resent: bool = False
    drafted_goes_to_controller: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause within a call. If the call times out first, `yield` raises KafkaTimeoutError."""

    ms: int


class BrokerResponse(NamedTuple):
    """A response. If `resent`, an earlier attempt of the request got no definite response."""

    message: Any
    version: int
    resent: bool = False

    def error(self, code: int, message: str | None = None) -> KafkaError | None:
        """Return the error with this code; None for the code NONE."""
        return KafkaError(error_code(code), message, resent=self.resent) if code else None

    def check(self, code: int, message: str | None = None) -> None:
        """Raise the error with this code, unless the code is NONE."""
        if error := self.error(code, message):
            raise error

    def result(self, element: Any, read: Callable[[Any], T]) -> Try[T]:
        """Return an element's error, or the result of `read` if there is none."""
        error = self._error_of(element)
        return Try.new_error(error) if error is not None else Try.new_value(read(element))

    def done(self, element: Any) -> Try[None]:
        """Return the error of an element, or success."""
        error = self._error_of(element)
        return DONE if error is None else Try.new_error(error)

    def _error_of(self, element: Any) -> KafkaError | None:
        return self.error(element.error_code, getattr(element, "error_message", None))


Step = tuple[Request, ...] | Wait
Plan = Generator[Step, list[Try[BrokerResponse]], T]

_BACKOFF_MS: Final = 100
_CODES: Final = {int(code): code for code in ErrorCode}


def error_code(code: int) -> ErrorCode:
    """Return the ErrorCode with this number; UNKNOWN_SERVER_ERROR if Kafka does not define it."""
    return _CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def error_codes(message: Any) -> list[ErrorCode]:
    """Return the codes of a response's elements; if no element has one, the response's own code."""
    arrays, has_code = _places_of_codes(message.__class__)
    nested = [
        code for name in arrays for row in getattr(message, name) or () for code in error_codes(row)
    ]
    return [error_code(message.error_code)] if has_code and not nested else nested


@cache
def _places_of_codes(kind: type[Any]) -> tuple[tuple[str, ...], bool]:
    """Return the arrays whose elements have error codes, and whether the struct itself has one."""
    fields = fields_of(kind)
    arrays = tuple(
        field.name
        for field in fields
        if isinstance(field.type, Array)
        and isinstance(field.type.of, type)
        and _has_codes(field.type.of)
    )
    return arrays, any(field.name == "error_code" for field in fields)


def _has_codes(kind: Any) -> bool:
    return any(_places_of_codes(kind))


def one(request: Request) -> Plan[BrokerResponse]:
    """Send one request. Raises AdminError if there is no response."""
    (outcome,) = yield (request,)
    return outcome.get()


class Batch(Generic[K, E, T]):
    """A request about several elements, each with a result of its own.

    Elements that failed with NOT_CONTROLLER or THROTTLING_QUOTA_EXCEEDED are sent again, without
    the others, until the call times out. With `retry_on_quota_violation=False`,
    THROTTLING_QUOTA_EXCEEDED is final.
    """

    def __init__(
        self,
        elements: Mapping[K, E],
        request: Callable[[Mapping[K, E]], Request],
        results: Callable[[BrokerResponse], Iterable[tuple[K, Try[T]]]],
        *,
        retry_on_quota_violation: bool = True,
    ) -> None:
        self._elements, self._request, self._results = elements, request, results
        self._repeated = {ErrorCode.NOT_CONTROLLER}
        if retry_on_quota_violation:
            self._repeated.add(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def run(self) -> Plan[dict[K, Try[T]]]:
        """Return the results, in the order of the elements.

        If the call fails after the first response, or times out after the request was sent, each
        element without a result gets the call's error. Any other error is raised.
        """
        done: dict[K, Try[T]] = {}
        left = dict(self._elements)
        while left:
            (outcome,) = yield (self._request(left),)
            error = outcome.error
            if error is not None and (
                done or (isinstance(error, KafkaTimeoutError) and error.sent)
            ):
                done |= {key: Try.new_error(error) for key in left if key not in done}
                break
            response = outcome.get()
            results = {key: result for key, result in self._results(response) if key in left}
            done |= results
            left = {key: left[key] for key in left if self._is_repeated(results.get(key))}
            if left:
                try:
                    yield Wait(max(_BACKOFF_MS, getattr(response.message, "throttle_time_ms", 0)))
                except KafkaTimeoutError:
                    break
        return {key: done[key] if key in done else _unmentioned() for key in self._elements}

    def errors(self) -> Plan[dict[K, AdminError | None]]:
        """Return the error of every element; None means success."""
        return {key: result.error for key, result in (yield from self.run()).items()}

    def _is_repeated(self, result: Try[T] | None) -> bool:
        error = None if result is None else result.error
        return isinstance(error, KafkaError) and error.code in self._repeated


def _unmentioned() -> Try[Any]:
    text = "The broker's response does not mention this element."
    return Try.new_error(ConnectionFailedError(text))


def only(results: Mapping[Any, AdminError | None]) -> None:
    """Raise the error of the only element, if it has one."""
    (error,) = results.values()
    if error is not None:
        raise error


def closed() -> ClientClosedError:
    """Return the error of a call on a closed client."""
    return ClientClosedError("The admin client is closed: create another one.")
