"""Sends Envelopes to a KRaft controller as Kafka's brokers do: API 58, one request at a time.

Kafka executes a request at least once: if a response is lost, the broker sends the request again,
and the second execution may fail, for example with TOPIC_ALREADY_EXISTS (docs/differences.md).
Requests that the broker makes itself are sent without an Envelope (docs/kafka/forwarding.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.slices import in_thread, is_large
from broker_proxy.migration.lifecycle import is_not_controller
from broker_proxy.migration.quorum import NoActiveControllerError, QuorumConnection
from envelope.messages import ApiRanges, ChannelClosedError, Envelope, EnvelopeReply
from envelope.principal_serde import DefaultPrincipalSerde, PrincipalSerde

# Requests with this broker's epoch. A KRaft controller expects the epoch of its own registration.
_WITH_EPOCH: Final = (ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS)
_KAFKAS_SERDE: Final = DefaultPrincipalSerde()
_NO_ZXID: Final = 0


class KraftLink:
    """A broker_proxy.forwarding.manager.ControllerLink to the active KRaft controller."""

    def __init__(
        self,
        connection: QuorumConnection,
        own_connection: QuorumConnection,
        *,
        serde: PrincipalSerde,
        broker_epoch: Callable[[], int],
    ) -> None:
        """`own_connection` has the requests that this broker makes itself, as in Kafka.

        `serde` is the one that serialized the principals of the Envelopes.
        """
        self._connection = connection
        self._own_connection = own_connection
        self._serde = serde
        self._tasks: set[asyncio.Task[EnvelopeReply]] = set()
        self._broker_epoch = broker_epoch

    @property
    def api_ranges(self) -> ApiRanges:
        """The versions that the controller supports; empty while they are unknown."""
        return self._connection.api_ranges

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        """Send an Envelope; return a future that has its reply or raises ChannelClosedError."""
        task = asyncio.create_task(self._send(envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(self, envelope: Envelope) -> EnvelopeReply:
        try:
            if envelope.is_as_broker:
                return await self._send_own(envelope)
            return await self._send_wrapped(envelope)
        except NoActiveControllerError as error:
            raise ChannelClosedError(str(error)) from error

    async def _send_wrapped(self, envelope: Envelope) -> EnvelopeReply:
        principal = self._serde.deserialize(envelope.principal)
        request = EnvelopeRequest(
            request_data=envelope.request_header + envelope.request_data,
            request_principal=_KAFKAS_SERDE.serialize(principal),
            client_host_address=envelope.client_address,
        )
        response: EnvelopeResponse = await self._connection.request(
            ApiKey.ENVELOPE, request, envelope.remaining_ms / 1000, is_not_controller
        )
        return EnvelopeReply(response.error_code, response.response_data, _NO_ZXID)

    async def _send_own(self, envelope: Envelope) -> EnvelopeReply:
        try:
            header, _ = decode_request_header(envelope.request_header)
            key, version, correlation_id, _ = header
            large, data = is_large(envelope.request_data), envelope.request_data
            # This broker made the request, so the limit of elements does not apply.
            message: Any = await in_thread(
                large, decode, key, "request", version, data, 0, "shipped"
            )
        except WireError:  # made on a drafted listener, whose versions Kafka does not have
            return EnvelopeReply(int(ErrorCode.UNSUPPORTED_VERSION), None, _NO_ZXID)
        if key in _WITH_EPOCH:
            message.broker_epoch = self._broker_epoch()
        response = await self._own_connection.request(
            ApiKey(key), message, envelope.remaining_ms / 1000, _has_not_controller
        )
        head = encode_response_header(key, version, correlation_id)
        body = await in_thread(large, encode_response, key, version, response)
        return EnvelopeReply(0, head + body, _NO_ZXID)

    def close(self) -> None:
        """Close the connections. Requests in flight fail."""
        self._connection.close()
        self._own_connection.close()


def _has_not_controller(response: Any) -> bool:
    """Return whether the response, or one of its topics, has NOT_CONTROLLER."""
    topics = getattr(response, "topics", ())
    return any(map(is_not_controller, (response, *topics)))
