"""Executes independent writes of one connection at the same time; responses keep their order.

Kafka executes the requests of a connection one after another. A client cannot see the difference
as long as the writes that overlap are of the same API and have no element in common: no order of
execution changes their results. Every other request waits for all earlier ones. The advantage: if
a client sends many small writes without waiting, several of them share one ZooKeeper transaction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.headers import UnsupportedVersionError
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.client_request import ClientRequest
from broker_proxy.connections.connection import ClientConnection
from broker_proxy.requests.dispatch import Dispatcher

Elements = frozenset[Hashable]
OVERLAPPING_MAX: Final = 64
_TOPIC: Final = 2  # a resource type


def _topics(message: Any) -> Elements:
    # Kafka rejects a_b if a.b exists, so both names count as one element.
    return frozenset(topic.name.replace(".", "_") for topic in message.topics)


def _deleted_topics(message: Any) -> Elements | None:
    names = message.topic_names or [topic.name for topic in message.topics]
    return None if None in names else frozenset(names)


def _topic_configs(message: Any) -> Elements | None:
    if any(resource.resource_type != _TOPIC for resource in message.resources):
        return None
    return frozenset(resource.resource_name for resource in message.resources)


def _bindings(message: Any) -> Elements:
    return frozenset(map(astuple, message.creations))


# The elements that a request writes; None: it may depend on other requests. A large request counts
# as dependent, because its elements would have to be looked at within one slice.
_ELEMENTS: Final[Mapping[int, Callable[[Any], Elements | None]]] = {
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.DELETE_TOPICS: _deleted_topics,
    ApiKey.CREATE_PARTITIONS: _topics,
    ApiKey.CREATE_ACLS: _bindings,
    ApiKey.ALTER_CONFIGS: _topic_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _topic_configs,
}


@dataclass(slots=True)
class _Write:
    request: ClientRequest
    recorded: asyncio.Future[Any]  # done once its response is recorded
    elements: Elements | None = None  # None: not determined yet


class OverlappingWrites:
    """The writes of one connection that are in progress."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        connection: ClientConnection,
        may_start: Callable[[], bool],
        now_ns: Callable[[], int],
    ) -> None:
        """`may_start`: whether the client's login has not expired."""
        self._dispatcher = dispatcher
        self._connection = connection
        self._may_start = may_start
        self._now_ns = now_ns
        self._current: _Write | None = None
        self._started: deque[_Write] = deque()  # in order; their frames are still queued
        self._opened: ClientRequest | None = None  # not started, because it may depend on others

    def open(self, frame: bytes) -> ClientRequest:
        """Return the request in the connection's next frame.

        Raises:
            UnsupportedVersionError: the API is known, but its version is not.
            WireError: the frame is not a request.
        """
        if self._started:
            return self._started[0].request
        request, self._opened = self._opened, None
        return request or self._connection.open_request(frame, self._now_ns())

    def has_response(self) -> bool:
        """Whether the next request was started early and is answered already."""
        return bool(self._started) and self._started[0].recorded.done()

    async def handle(self, request: ClientRequest) -> bytes | None:
        """Handle a request; meanwhile, also execute later writes that are independent of it."""
        if self._started:
            write = self._started.popleft()
            handled: Awaitable[bytes | None] = write.recorded
        elif request.header.api_key in _ELEMENTS and self._dispatcher.may_overlap(request):
            write = _Write(request, asyncio.get_running_loop().create_future())
            handled = self._dispatcher.handle(request)
        else:
            return await self._dispatcher.handle(request)
        self._current = write
        self.start_more()
        try:
            return await handled
        finally:
            self._current = None
            if not write.recorded.done():
                write.recorded.set_result(None)

    async def finish(self) -> None:
        """Wait for the started writes that get no response, because the connection is closed."""
        if self._started:
            await asyncio.gather(*(e.recorded for e in self._started), return_exceptions=True)

    def start_more(self) -> None:
        """Start the queued writes that are independent of all writes in progress."""
        in_progress: list[_Write] = [*filter(None, (self._current,)), *self._started]
        while in_progress and self._opened is None and len(in_progress) < OVERLAPPING_MAX:
            frame = self._connection.queued_frame(len(self._started))
            last = in_progress[-1]
            key = last.request.header.api_key
            if frame is None or frame[:2] != key.to_bytes(2, "big") or not self._may_start():
                return
            try:
                request = self._connection.open_request(frame, self._now_ns())
            except (UnsupportedVersionError, WireError):
                return  # It is answered in its turn.
            # Checked for each request, because quotas and fault rules can change.
            may_overlap = self._dispatcher.may_overlap(request)
            elements = self._independent(request, in_progress) if may_overlap else None
            if elements is None:
                self._opened = request
                return
            task = asyncio.create_task(self._dispatcher.handle(request, last.recorded))
            self._started.append(_Write(request, task, elements))
            in_progress.append(self._started[-1])

    def _independent(self, request: ClientRequest, earlier: list[_Write]) -> Elements | None:
        """Return the elements of a request; None if it may depend on an earlier one."""
        elements = self._elements(request)
        for write in earlier:
            if write.elements is None:
                write.elements = self._elements(write.request)
            if elements is None or write.elements is None or elements & write.elements:
                return None
        return elements

    def _elements(self, request: ClientRequest) -> Elements | None:
        message = self._dispatcher.decode(request)
        return None if message is None else _ELEMENTS[request.header.api_key](message)
