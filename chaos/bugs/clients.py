"""Bugs of how a broker treats its clients: connections, logins, rights and forwarding."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from bridgehead.authorizer import (
    AccessControlEntry,
    Acls,
    Action,
    Authorizer,
    Operation,
    Requester,
    ResourcePattern,
    ResourceType,
    Verdict,
)
from bridgehead.kafka_wire.framing import frame
from broker_proxy.authentication.authenticator import (
    Dispatch,
    Expired,
    LoginOutcome,
    SaslAuthenticator,
)
from broker_proxy.connections.client_socket import ClientSocket
from broker_proxy.connections.connection import ClientConnection
from broker_proxy.connections.server import KafkaServer
from chaos.bugs.bug import Bug, config, part
from node.config import NodeConfig


class _OvertakingSocket(ClientSocket):
    async def _work(self, connection: ClientConnection, transport: asyncio.Transport) -> None:
        async with asyncio.TaskGroup() as group:
            while (data := connection.next_frame()) is not None:
                group.create_task(self._respond_at_once(connection, transport, data))
        self._task = None

    async def _respond_at_once(
        self, connection: ClientConnection, transport: asyncio.Transport, data: bytes
    ) -> None:
        result, _ = await self._respond(connection, data, [])
        if result is not None:
            self._write([frame(result)], transport)


class _OvertakingServer(KafkaServer):
    new_socket = _OvertakingSocket


class _ServesExpiredSessions(SaslAuthenticator):
    def receive(self, frame: bytes, now_ms: int) -> LoginOutcome:
        outcome = super().receive(frame, now_ms)
        return Dispatch() if isinstance(outcome, Expired) else outcome


@dataclass(frozen=True, slots=True)
class _AllowBeforeDeny:
    authorizer: Authorizer

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        verdict = self.authorizer.authorize(requester, action, _WithoutDenials(acls))
        return verdict if verdict.allowed else self.authorizer.authorize(requester, action, acls)

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        return self.authorizer.authorize_by_resource_type(requester, operation, resource_type, acls)


@dataclass(frozen=True, slots=True)
class _WithoutDenials:
    acls: Acls

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        entries = self.acls.matching(resource_type, name)
        return [entry for entry in entries if entry.permission == "ALLOW"]

    def of_type(
        self, resource_type: ResourceType
    ) -> Iterable[tuple[ResourcePattern, Sequence[AccessControlEntry]]]:
        return self.acls.of_type(resource_type)


def _allowing_first(config: NodeConfig) -> NodeConfig:
    if config.authorizer is None:
        return config
    return replace(config, authorizer=_AllowBeforeDeny(config.authorizer))


class _WritesPastTheBridge(NodeConfig):
    @property
    def writes_directly(self) -> bool:
        return True

    @property
    def forwards(self) -> bool:
        return self.bridgehead.forwarding_enabled


def _writing_directly(config: NodeConfig) -> NodeConfig:
    return _WritesPastTheBridge(**{f.name: getattr(config, f.name) for f in fields(config)})


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="responses_overtake",
        does="A broker executes the requests of a connection at the same time.",
        apply=part("server", _OvertakingServer),
        found_by="F4",
        test="integration/test_bugs_of_connections.py"
        "::test_a_response_that_overtakes_another_fails_f4",
    ),
    Bug(
        name="serves_expired_sessions",
        does="A broker executes requests after the login has expired.",
        apply=part("authenticator", _ServesExpiredSessions),
        found_by="A10",
        test="integration/test_expired_credentials.py::test_served_expired_sessions_fail_a10",
    ),
    Bug(
        name="allow_before_deny",
        does="A matching ALLOW takes precedence over a matching DENY.",
        apply=config(_allowing_first),
        found_by="A1",
        test="integration/test_bugs_of_connections.py"
        "::test_direct_write_is_judged_by_the_acls_of_its_broker",
    ),
    Bug(
        name="writes_past_the_bridge",
        does="A broker that should forward keeps writing to ZooKeeper itself.",
        apply=config(_writing_directly),
        found_by="W6",
        test="integration/test_upgrade.py"
        "::test_direct_writes_of_a_broker_that_claims_to_forward_are_detected",
    ),
)
