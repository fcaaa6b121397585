"""A request on its way through the broker, and the errors that end it without a response.

Sockets, APIs and forwarding all handle these values, so nothing here imports another part of the
broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.authorizer import Requester
from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.acls.authorization import Authorize
from cluster_model.client import Client

RESPONSE_ELEMENTS_MAX: Final = 1_000_000


@dataclass(slots=True)
class ClientConnectionInfo:
    """A connection and its client. Logins, ApiVersions and request headers update `client`."""

    connection_id: str  # local:port-remote:port-index, as Kafka writes it
    client: Client


class NeverRespondedError(Exception):
    """Raised where Kafka never responds, but leaves the connection open (docs/quirks.md)."""


class NoResponseError(Exception):
    """Raised after a request that gets no response: Produce with acks=0."""


class ClosedWithoutResponseError(Exception):
    """Raised where Kafka closes the connection without a response. The text is logged."""


class ResponseSize:
    """Counts the elements of a response that may be much larger than its request.

    A request may name one broker a hundred thousand times, and each time get all of its configs.
    Kafka has no limit but its memory (docs/differences.md).
    """

    def __init__(self) -> None:
        self._left = RESPONSE_ELEMENTS_MAX

    def add(self, count: int) -> None:
        """Count elements; raise ClosedWithoutResponseError if there are too many."""
        self._left -= count
        if self._left < 0:
            raise ClosedWithoutResponseError(
                f"a response of more than {RESPONSE_ELEMENTS_MAX} elements"
            )


@dataclass(slots=True)
class RequestProgress:
    """The progress of a request, filled in while it is handled. Times are monotonic."""

    message: Any = None  # None until it is decoded
    response: Any = None  # a message, or a relayed body; None closes the connection, but see below
    throttle_ms: int = 0  # how long the connection is muted after the response
    controller_throttle_ms: int = 0  # reported by the controller, if it is in this process
    never_gets_response: bool = False  # see NeverRespondedError
    needs_no_response: bool = False  # Produce with acks=0
    executed_ns: int = 0
    forwarded_ns: int = 0  # 0: not forwarded
    responded_ns: int = 0


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request of a client or of this broker. The header is decoded, the body is not."""

    request_id: str
    header: RequestHeader
    header_bytes: bytes
    body: bytes
    connection: ClientConnectionInfo
    client: Client  # as it was when the header was decoded
    received_ns: int  # monotonic
    progress: RequestProgress = field(default_factory=RequestProgress)
    made_by_broker: bool = False  # such as an automatic topic creation
    is_as_broker: bool = False  # made by this broker, and `client` is this broker

    @property
    def requester(self) -> Requester:
        """The client as an authorizer sees it."""
        return self.client.requester(self.header.api_key, self.header.api_version)


# Returns a function that checks what the request's client may do under this broker's ACLs.
AuthorizeFor = Callable[[ClientRequest], Authorize]
