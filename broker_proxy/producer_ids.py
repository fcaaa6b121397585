"""Producer ids from the blocks that the controller allocates to this broker. KIP-730."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.forwarding import Forwarded
from broker_proxy.forwarding_retry import Step
from cluster_model.client import Client

_log = logging.getLogger(__name__)


class ProducerIds:
    """Returns every id of a block once, then asks for the next block.

    `broker_epoch` returns the epoch of this broker's current registration. A block that is not
    used up when the broker stops is lost, as in Kafka.
    """

    def __init__(
        self,
        broker: Client,
        broker_id: int,
        broker_epoch: Callable[[], int],
        request_prefix: Callable[[], str],
        forward: Callable[[ClientRequest, bytes], Awaitable[Forwarded]],
    ) -> None:
        self._broker = broker
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._request_prefix = request_prefix
        self._forward = forward
        self._numbers = itertools.count(1)
        self._next, self._end = 0, 0
        self._lock = asyncio.Lock()  # one request for a block at a time

    async def new_id(self) -> int:
        """Return an id that no other producer of the cluster has.

        Raises:
            ApiError: the controller allocates no block. As with Kafka, the client gets
                COORDINATOR_LOAD_IN_PROGRESS and retries.
        """
        async with self._lock:
            if self._next == self._end:
                self._next, self._end = await self._allocate()
            self._next += 1
            return self._next - 1

    async def _allocate(self) -> tuple[int, int]:
        """Return the next block: its first id, and the id after its last id."""
        header = RequestHeader(
            ApiKey.ALLOCATE_PRODUCER_IDS, 0, next(self._numbers), self._broker.client_id
        )
        message = AllocateProducerIdsRequest(self._broker_id, self._broker_epoch())
        request = ClientRequest(
            request_id=f"{self._request_prefix()}.producer_ids.{header.correlation_id}",
            header=header,
            header_bytes=encode_request_header(header),
            body=encode_request(header.api_key, header.api_version, message),
            connection=ClientConnectionInfo("", self._broker),
            client=self._broker,
            received_ns=0,
            made_by_broker=True,
        )
        forwarded = await self._forward(request, request.body)
        if forwarded.step is not Step.RELAY or forwarded.response is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        try:
            key, version = header.api_key, header.api_version
            _, at = decode_response_header(key, version, forwarded.response)
            answer = decode_response(key, version, forwarded.response, at)
        except WireError as wrong:
            _log.warning("malformed response to AllocateProducerIds: %s", wrong)
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from wrong
        if answer.error_code != ErrorCode.NONE:
            _log.info("no producer ids: %s", ErrorCode(answer.error_code).name)
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        start = answer.producer_id_start
        return start, start + answer.producer_id_len
