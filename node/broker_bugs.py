"""Faulty sockets and channels of brokers, for `node.seeded_bugs`. Production never imports this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from bridgehead.kafka_wire.framing import frame
from broker_proxy.connections.client_socket import ClientSocket
from broker_proxy.connections.connection import ClientConnection
from broker_proxy.connections.server import KafkaServer
from envelope.channel import ControllerChannel
from envelope.messages import MetadataUpdate

_REPEATED_AFTER_S: Final = 0.2


class OvertakingSocket(ClientSocket):
    """answers_overtake: executes the requests of a connection at the same time."""

    async def _work(self, connection: ClientConnection, transport: asyncio.Transport) -> None:
        async with asyncio.TaskGroup() as group:
            while (data := connection.next_frame()) is not None:
                group.create_task(self._answer_at_once(connection, transport, data))
        self._task = None

    async def _answer_at_once(
        self, connection: ClientConnection, transport: asyncio.Transport, data: bytes
    ) -> None:
        result, _ = await self._answer(connection, data, [])
        if result is not None:
            self._write([frame(result)], transport)


class OvertakingServer(KafkaServer):
    """answers_overtake."""

    new_socket = OvertakingSocket


def channel_with_repeats(
    new_channel: Callable[..., ControllerChannel],
    *arguments: Any,
    on_update: Callable[[MetadataUpdate], None],
    **others: Any,
) -> ControllerChannel:
    """repeats_updates: a broker applies each change of metadata again, after later changes."""
    loop = asyncio.get_running_loop()

    def apply(update: MetadataUpdate) -> None:
        on_update(update)
        if update.complete and not update.starts_full_image:
            loop.call_later(_REPEATED_AFTER_S, on_update, update)

    return new_channel(*arguments, on_update=apply, **others)
