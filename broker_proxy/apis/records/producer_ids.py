"""Producer ids from the blocks that the controller allocates to this broker. KIP-730."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.forwarding.controller_requests import ControllerRequests

_log = logging.getLogger(__name__)


class ProducerIds:
    """Returns every id of a block once, then asks for the next block.

    `broker_epoch` returns the epoch of this broker's current registration. The unused ids of a
    block are lost when the broker stops, as in Kafka.
    """

    def __init__(
        self, broker_id: int, broker_epoch: Callable[[], int], requests: ControllerRequests
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._requests = requests
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
        message = AllocateProducerIdsRequest(self._broker_id, self._broker_epoch())
        try:
            response = await self._requests.send(ApiKey.ALLOCATE_PRODUCER_IDS, 0, message)
        except WireError as wrong:
            _log.warning("malformed response to AllocateProducerIds: %s", wrong)
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from wrong
        if response is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if response.error_code != ErrorCode.NONE:
            _log.info("no producer ids: %s", ErrorCode(response.error_code).name)
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        start = response.producer_id_start
        return start, start + response.producer_id_len
