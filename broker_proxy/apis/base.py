"""The interfaces of the APIs that the receiving broker handles, and the requests they handle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from bridgehead.authorizer import Requester
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.acls.authorization import Authorize
from cluster_model.client import Client


@dataclass(slots=True)
class ClientConnectionInfo:
    """A connection and its client. Logins, ApiVersions and request headers update `client`."""

    connection_id: str  # local:port-remote:port-index, as Kafka writes it
    client: Client


class NeverAnsweredError(Exception):
    """Raised where Kafka never responds, but leaves the connection open (docs/quirks.md)."""


class NoResponseError(Exception):
    """Raised after a request that gets no response: Produce with acks=0."""


class ClosedUnansweredError(Exception):
    """Raised where Kafka closes the connection without a response. The text is logged."""


@dataclass(slots=True)
class Progress:
    """The progress of a request, filled in while it is handled. Times are monotonic."""

    message: Any = None  # None until it is decoded
    response: Any = None  # a message, or a relayed body; None closes the connection, but see below
    throttle_ms: int = 0  # how long the connection is muted after the response
    controller_throttle_ms: int = 0  # reported by the controller, if it is in this process
    is_never_answered: bool = False  # see NeverAnsweredError
    needs_no_response: bool = False  # Produce with acks=0
    executed_ns: int = 0
    forwarded_ns: int = 0  # 0: not forwarded
    answered_ns: int = 0


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
    progress: Progress = field(default_factory=Progress)
    made_by_broker: bool = False  # such as an automatic topic creation

    @property
    def requester(self) -> Requester:
        """The client as an authorizer sees it."""
        return self.client.requester(self.header.api_key, self.header.api_version)


# Returns a function that checks what the request's client may do under this broker's ACLs.
AuthorizeFor = Callable[[ClientRequest], Authorize]


class LocalApi(Protocol):
    """An API that every broker handles itself.

    `handle` may read ZooKeeper. It returns the response message, or its bytes. If it raises an
    ApiError, the client gets an error response for the whole request. Other exceptions become
    UNKNOWN_SERVER_ERROR, except those that this module defines.
    """

    api_key: ClassVar[ApiKey]

    async def handle(self, request: ClientRequest, message: Any) -> Any: ...


class SplitApi(Protocol):
    """A forwarded API; the receiving broker answers some of its elements.

    See docs/kafka/forwarding.md#forwardable-apis. `split` returns this broker's part of the
    response, and the message to forward (None: nothing). `is_wrapped` is true for requests that a
    drafted listener forwards: of these, this broker answers only the resources of its own loggers.
    `merge` combines the two parts in the order of the request's elements.
    """

    api_key: ClassVar[ApiKey]

    async def split(
        self, request: ClientRequest, message: Any, *, is_wrapped: bool = False
    ) -> tuple[Any, Any | None]: ...

    def merge(
        self, request: ClientRequest, message: Any, local: Any, forwarded: Any | None
    ) -> Any: ...
