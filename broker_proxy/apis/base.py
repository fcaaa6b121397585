"""What the APIs answered by the receiving broker look like, and what they may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from bridgehead.authorizer import Asker
from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.authorization import Authorize
from cluster_model.principal import KafkaPrincipal


@dataclass(slots=True)
class ClientConnectionInfo:
    """The connection a request came over. The software fields fill when ApiVersions says them."""

    connection_id: str  # local:port-remote:port-index, as Kafka writes it
    listener_name: str
    security_protocol: str
    dialect: str
    client_host: str
    client_address: bytes  # 4 or 16 bytes
    principal: KafkaPrincipal
    software_name: str = "unknown"
    software_version: str = "unknown"


class NeverAnsweredError(Exception):
    """A quirk was asked for: this request gets no answer; its connection stays as it is."""


class ClosedUnansweredError(Exception):
    """Kafka closes the connection over this request, without a word. Its text is for the log."""


@dataclass(slots=True)
class Course:
    """What became of a request, beside its answer. The dispatcher fills it in."""

    message: Any = None  # decoded; None: it could not be
    response: Any = None  # a message, or a body that was relayed; None: the connection is closed
    throttle_ms: int = 0  # its connection is served no more for so long, once it is answered
    own_throttle_ms: int = 0  # of that, what the controller in this very process said
    is_left: bool = False  # never answered, as a quirk asks for
    executed_ns: int = 0  # the times are monotonic
    handed_on_ns: int = 0  # to the controller; 0: it was not
    answered_ns: int = 0


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request in its turn: header decoded, body as received."""

    request_id: str
    header: RequestHeader
    header_bytes: bytes
    body: bytes
    connection: ClientConnectionInfo
    received_ns: int  # monotonic
    course: Course = field(default_factory=Course)
    made_by_broker: bool = False  # this broker's own; no client can say so

    @property
    def asker(self) -> Asker:
        """Who an authorizer is asked about."""
        return Asker(
            principal=self.connection.principal,
            host=self.connection.client_host,
            api_key=self.header.api_key,
            api_version=self.header.api_version,
            client_id=self.header.client_id,
            listener_name=self.connection.listener_name,
            security_protocol=self.connection.security_protocol,
        )


# What may the asker of this request do? As of now: bound to the ACLs that this broker knows.
AuthorizeFor = Callable[[ClientRequest], Authorize]


class LocalApi(Protocol):
    """An API that every broker answers itself. Built once with what it needs.

    `answer` may read ZooKeeper. It returns the response message; raising ApiError refuses the
    whole request in the API's own shape (`refuse`), any other exception is UNKNOWN_SERVER_ERROR.
    """

    api_key: ClassVar[int]

    async def answer(self, request: ClientRequest, message: Any) -> Any: ...


class SplitApi(Protocol):
    """A forwarded API of which the receiving broker answers a part (kafka-semantics 1.3).

    `split` returns the elements answered here, and the message to forward (None: nothing is left).
    `merge` joins both in the order of the original request.
    """

    api_key: ClassVar[int]

    async def split(self, request: ClientRequest, message: Any) -> tuple[Any, Any | None]: ...

    def merge(
        self, request: ClientRequest, message: Any, local: Any, forwarded: Any | None
    ) -> Any: ...
