"""Direct writes: a broker below the bridge release writes to ZooKeeper without the controller."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import is_large
from broker_proxy.client_request import ClientRequest
from cluster_model.direct_writes import ACL_WRITES, TOKEN_WRITES
from cluster_model.session_state import ConnectionLostError
from controller.apis.base import AdminApi
from controller.direct.session import DirectSession
from controller.direct.writer import DirectWriter
from controller.requests.pending_request import PendingRequest
from envelope.messages import RequestIdentity
from node.config import NodeConfig

# As in Kafka, a broker applies its own writes of these APIs before it answers. It learns of its
# other writes from the notifications, like every broker.
_APPLIED_BEFORE_RESPONSE: Final = ACL_WRITES | TOKEN_WRITES


class DirectWrites:
    """Writes with the credential of the controller session."""

    def __init__(
        self,
        config: NodeConfig,
        writer: DirectWriter,
        session: DirectSession,
        *,
        apis: Mapping[int, AdminApi],
        next_identity: Callable[[], RequestIdentity],
        read_acls_and_tokens: Callable[[int], Awaitable[None]],
    ) -> None:
        """`read_acls_and_tokens(zxid)` returns when this node has read both up to that zxid."""
        self._writer = writer
        self._session = session
        self._apis = apis
        self._next_identity = next_identity
        self._read_acls_and_tokens = read_acls_and_tokens
        self._random = random.Random(secrets.randbits(64))
        self._timeout_s = config.broker.int("request.timeout.ms") / 1000

    async def open(self) -> None:
        """Open the session, so that errors show at start."""
        await self._session.open()

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()

    async def write(self, request: ClientRequest, message: Any) -> tuple[Any, int]:
        header = request.header
        api = self._apis.get(header.api_key)
        if api is None:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        pending = PendingRequest(
            identity=self._next_identity(),
            request_id=request.request_id,
            header=header,
            client=request.client,
            api=api,
            request=message,
            random=self._random,
            deadline_s=time.monotonic() + self._timeout_s,
            reply=asyncio.get_running_loop().create_future(),
            made_by_broker=request.made_by_broker,
            is_large=is_large(request.body),
        )
        response, zxid = await self._writer.write(pending)
        if header.api_key in _APPLIED_BEFORE_RESPONSE:
            # The write is done. If this read fails, the broker reads again when it reconnects.
            with contextlib.suppress(ConnectionLostError, TimeoutError):
                async with asyncio.timeout(pending.deadline_s - time.monotonic()):
                    await self._read_acls_and_tokens(zxid)
        return response, zxid
