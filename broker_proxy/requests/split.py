"""Executes writes, and splits those of which this broker answers a part itself.

A body is forwarded as the client sent it, unless this broker answers a part of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bridgehead.kafka_wire.apis import Route
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.slices import in_thread, is_large
from broker_proxy.apis.base import SplitApi
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.controller_requests import WriteDirectly
from broker_proxy.requests.relay import Relay
from broker_proxy.requests.responses import EncodedResponse, encoded


class Writes:
    """The writes of one broker: it forwards them, or executes them itself."""

    def __init__(
        self,
        relay: Relay,
        split_apis: Mapping[int, SplitApi],
        *,
        image_zxid: Callable[[], int],
        write_directly: WriteDirectly | None = None,
    ) -> None:
        self._relay = relay
        self._split_apis = split_apis
        self._image_zxid = image_zxid
        self._write_directly = write_directly

    @property
    def are_direct(self) -> bool:
        """True on a broker below the bridge release, which writes some metadata itself."""
        return self._write_directly is not None

    async def execute(self, request: ClientRequest, message: Any, route: Route) -> EncodedResponse:
        """Execute a write whose route is FORWARD or DIRECT."""
        split = self._split_apis.get(request.header.api_key)
        if split is not None:
            return await self._split(request, message, split, route)
        return await self._write(request, message, request.body, route)

    async def _write(
        self, request: ClientRequest, message: Any, body: bytes, route: Route
    ) -> EncodedResponse:
        """Forward a write, or execute it on this broker; `body` encodes `message`."""
        if route is Route.FORWARD:
            return await self._relay.forward(request, message, body)
        assert self._write_directly is not None
        response, zxid = await self._write_directly(request, message)
        return await encoded(request, response, zxid)

    async def _split(
        self, request: ClientRequest, message: Any, split: SplitApi, route: Route
    ) -> EncodedResponse:
        """Answer this broker's resources and forward the others; merge results in request order.

        In the drafted dialect (KIP-590) this broker's resources are only those of its own loggers.
        A broker below the bridge release does not forward the other resources: it alters them in
        ZooKeeper itself.
        """
        key, version = request.header.api_key, request.header.api_version
        dialect = request.client.dialect
        is_wrapped = dialect == "drafted" and route is Route.FORWARD
        local, rest = await split.split(request, message, is_wrapped=is_wrapped)
        if rest is None:
            large = is_large(request.body)
            merged = await in_thread(large, split.merge, request, message, local, None)
            return await encoded(request, merged, self._image_zxid())
        untouched, large = rest is message, is_large(request.body)
        body = request.body
        if not untouched:
            body = await in_thread(large, encode_request, key, version, rest, dialect)
        written = await self._write(request, rest, body, route)
        if untouched or written.body is None:
            return written
        forwarded = await in_thread(
            large, decode_response, key, version, written.body, dialect=dialect
        )
        merged = await in_thread(large, split.merge, request, message, local, forwarded)
        return replace(await encoded(request, merged, written.zxid), error=written.error)
