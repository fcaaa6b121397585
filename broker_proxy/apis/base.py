"""The interfaces of the APIs that the receiving broker handles."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from broker_proxy.client_request import ClientRequest


class LocalApi(Protocol):
    """An API that every broker handles itself.

    `handle` may read ZooKeeper. It returns the response message, or its bytes. If it raises an
    ApiError, the client gets an error response for the whole request. Other exceptions become
    UNKNOWN_SERVER_ERROR, except those that `client_request` defines.
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
