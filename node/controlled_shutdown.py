"""A broker that stops asks the controller to move its leaders first (controlled.shutdown.*).

As in Kafka the broker repeats the request while it leads partitions that another replica may take
over later, and stops anyway after the last attempt. It does not wait for a controller that is gone:
all brokers may be stopping.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from broker_proxy.controller_requests import ControllerRequests
from node.config import NodeConfig

_log = logging.getLogger(__name__)
_VERSION: Final = 3
_POLL_S: Final = 0.05


class ControlledShutdown:
    """Asks the controller to move the leaders off this broker."""

    def __init__(
        self,
        config: NodeConfig,
        requests: ControllerRequests,
        broker_epoch: Callable[[], int],
        knows_controller: Callable[[], bool],
    ) -> None:
        self.is_enabled = config.broker.boolean("controlled.shutdown.enable")
        self._broker_id = config.broker_id
        self._attempts = config.broker.int("controlled.shutdown.max.retries")
        self._backoff_s = config.broker.long("controlled.shutdown.retry.backoff.ms") / 1000
        self._requests = requests
        self._broker_epoch = broker_epoch
        self._knows_controller = knows_controller

    async def run(self) -> bool:
        """Return whether this broker leads nothing that another broker could lead."""
        for attempt in range(self._attempts):
            if attempt:
                await self._while_controlled(asyncio.create_task(asyncio.sleep(self._backoff_s)))
            if not self._knows_controller():
                break
            if await self._ask():
                return True
        _log.warning("this broker stops while it leads partitions")
        return False

    async def _ask(self) -> bool:
        message = ControlledShutdownRequest(self._broker_id, self._broker_epoch())
        asked = asyncio.create_task(
            self._requests.send(ApiKey.CONTROLLED_SHUTDOWN, _VERSION, message)
        )
        if not await self._while_controlled(asked):
            return False
        response = asked.result()
        assert response is None or isinstance(response, ControlledShutdownResponse)
        if response is None or response.error_code != ErrorCode.NONE:
            _log.info("the controller did not move the leaders: %s", response)
            return False
        return not response.remaining_partitions

    async def _while_controlled(self, task: asyncio.Task[object]) -> bool:
        """Wait for the task; cancel it and return False if there is no controller any more."""
        while not task.done() and self._knows_controller():
            await asyncio.wait({task}, timeout=_POLL_S)
        if task.done():
            return True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False
