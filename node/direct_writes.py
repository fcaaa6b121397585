"""What a broker below the bridge release writes itself: the dispatcher's way to ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from broker_proxy.apis.base import ClientRequest
from cluster_model.authorization import nothing_is_allowed
from cluster_model.direct_writes import ACL_WRITES, TOKEN_WRITES
from cluster_model.session_state import ConnectionLostError
from controller.apis.base import RequestContext
from controller.direct.session import DirectSession
from controller.direct.writer import DirectServices, DirectWriter
from controller.store.port import Mutant
from controller.work import Work
from node.apis import build_admin_apis
from node.config import NodeConfig

if TYPE_CHECKING:
    from node.node import Node

# In Kafka, who wrote them obeys them at once; of all else it hears as every broker does.
_OBEYED_AT_ONCE: Final = ACL_WRITES | TOKEN_WRITES


def writes_directly(config: NodeConfig, mutants: frozenset[Mutant]) -> bool:
    """Tell whether this node writes past the controller; at the bridge that is a seeded bug."""
    return config.writes_directly or Mutant.WRITES_PAST_THE_BRIDGE in mutants


class DirectWrites:
    """One node's. It holds the credential that writes, as such brokers did."""

    def __init__(self, node: Node, mutants: frozenset[Mutant]) -> None:
        config = node.config
        self._node = node
        self._apis = build_admin_apis(config, lambda: node.effective, mutants)
        self._random = random.Random(secrets.randbits(64))
        self._timeout_s = config.broker.int("request.timeout.ms") / 1000
        self._session = DirectSession(
            config.zookeeper_connect,
            broker_id=config.broker_id,
            session_timeout_ms=config.session_timeout_ms,
            connection_timeout_ms=config.connection_timeout_ms,
            access=config.controller_access,
            log=node.log,
            on_answer=node.metrics.zookeeper_answered,
        )
        self._writer = DirectWriter(
            self._session,
            DirectServices(
                bind_authorize=node.authorization.bind,
                acls=lambda: node.learned_acls.acls,  # Also in office: it decides as a broker.
                acls_as_of=lambda: node.learned_acls.as_of,
                policies=node.policies,
                log=node.log,
                now_s=time.monotonic,
                now_ms=node.clock.wall_ms,
            ),
        )

    async def open(self) -> None:
        """Open the session, so that what is wrong with it is said at start."""
        await self._session.open()

    async def close(self) -> None:
        """End it."""
        await self._session.close()

    async def write(self, request: ClientRequest, message: Any) -> tuple[Any, int]:
        """See broker_proxy.dispatch.WriteDirectly."""
        header, connection = request.header, request.connection
        api = self._apis.get(header.api_key)
        if api is None:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        context = RequestContext(
            request_id=request.request_id,
            api_key=header.api_key,
            api_version=header.api_version,
            dialect=connection.dialect,
            principal=connection.principal,
            client_host=connection.client_host,
            client_id=header.client_id,
            listener_name=connection.listener_name,
            security_protocol=connection.security_protocol,
            authorize=nothing_is_allowed,  # Until it is decided.
            random=self._random,
            now_ms=self._node.clock.wall_ms(),
        )
        work = Work(
            identity=self._node.forwarding.draw_identity(),
            context=context,
            api=api,
            request=message,
            correlation_id=header.correlation_id,
            deadline_s=time.monotonic() + self._timeout_s,
            answer=asyncio.get_running_loop().create_future(),
        )
        response, zxid = await self._writer.write(work)
        if header.api_key in _OBEYED_AT_ONCE:
            await self._learn(zxid, work.deadline_s)
        return response, zxid

    async def _learn(self, zxid: int, deadline_s: float) -> None:
        """Have this broker, and the controller beside it, know what was written."""
        # It is written, whatever happens now: who reconnects reads everything again.
        with contextlib.suppress(ConnectionLostError, TimeoutError):
            async with asyncio.timeout(deadline_s - time.monotonic()):
                await self._node.watcher.learn(zxid)
                await self._node.controller.foreign.settled()
