"""The commands of a node's control socket.

The command `request` executes a request as a given principal. It requires no password, because a
process that can open the socket can also read the node's keys. In all other respects, the node
handles such a request like one from a client: it checks, authorizes and forwards the request, and
records it in the evidence.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridgehead.cluster.control_socket import ControlError
from bridgehead.fault_rules import FaultRuleError, FaultRules, parse_rule
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.client_request import ClientConnectionInfo, ClientRequest
from broker_proxy.requests.dispatch import Dispatcher
from broker_proxy.requests.fault_injection import OWNER, SharedCount
from cluster_model.principal import KafkaPrincipal
from cluster_model.scram import MECHANISM_NAMES
from cluster_model.session_state import ConnectionLostError
from node.assembly.parts import Parts
from node.run.lifecycle import Node


class ControlCommands:
    """Executes the commands of one node."""

    def __init__(
        self, node: Node, parts: Parts, dispatcher: Dispatcher, request_stop: Callable[[str], None]
    ) -> None:
        self._node = node
        self._parts = parts
        self._dispatcher = dispatcher
        self._request_stop = request_stop
        self._counter = itertools.count(1)

    async def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute one command and return its result.

        Raises:
            ControlError: the command is unknown or malformed, or it failed.
        """
        match message:
            case {"command": "state"}:
                return self._node.status()
            case {"command": "resign"}:
                await self._parts.controller.resign("a command")
            case {"command": "pin", "controller_id": int() | None as controller_id}:
                self._parts.follower.pin(controller_id)
            case {"command": "expire", "session": "controller" | "broker" as session}:
                owner = (
                    self._parts.controller
                    if session == "controller"
                    else self._parts.broker.watcher
                )
                try:
                    await owner.expire()
                except ConnectionLostError as lost:
                    raise ControlError(f"The session cannot be expired: {lost}.") from None
            case {"command": "faults_add", "rule": dict() as rule}:
                return self._add_fault(rule, message.get("name"), message.get("count_file"))
            case {"command": "faults_list"}:
                return {"rules": self._fault_rules().described()}
            case {"command": "faults_remove"}:
                try:
                    return {"removed": self._fault_rules().remove(message.get("name"))}
                except FaultRuleError as wrong:
                    raise ControlError(str(wrong)) from None
            case {"command": "stop"}:
                self._request_stop("a command")
            case {"command": "scram_salts", "users": list() as users}:
                return {"salts": self._salts(users)}
            case {
                "command": "request",
                "principal": str() as principal,
                "api_key": int() as key,
                "api_version": int() as version,
                "body": str() as body,
            }:
                return {"body": await self._request(principal, key, version, body)}
            case _:  # Only the command is shown: the rest may be secret.
                raise ControlError(f"unknown command: {message.get('command')}")
        return {"ok": True}

    def _fault_rules(self) -> FaultRules:
        rules = self._parts.broker.fault_rules
        if rules is None:
            raise ControlError(
                f"Broker {self._parts.config.broker_id} does not allow fault rules: start it with "
                "bridgehead.faults.allow=true."
            )
        return rules

    def _add_fault(
        self, document: dict[str, Any], name: str | None, count_file: str | None
    ) -> dict[str, Any]:
        rules = self._fault_rules()
        shared = None if count_file is None else SharedCount(count_file)
        try:
            return {"name": rules.add(parse_rule(document), name, shared)}
        except FaultRuleError as wrong:
            raise ControlError(str(wrong)) from None

    async def _request(self, principal: str, key: int, version: int, body: str) -> str:
        """Execute a request as `principal`; request and response body are base64."""
        try:
            response = await self._dispatch(principal, key, version, base64.b64decode(body))
        except (WireError, binascii.Error):
            response = None
        if response is None:
            raise ControlError(f"the broker did not answer API {key}, version {version}")
        return base64.b64encode(response).decode()

    async def _dispatch(self, principal: str, key: int, version: int, body: bytes) -> bytes | None:
        """Return the response body; None if the connection of a client would be closed."""
        kind, _, name = principal.partition(":")
        header = RequestHeader(key, version, 0, "owner")
        client = replace(
            self._parts.config.own_client,
            principal=KafkaPrincipal(kind, name),
            dialect=self._parts.config.listeners[0].dialect,
            client_id=header.client_id,
        )
        request = ClientRequest(
            request_id=f"{self._parts.broker.state.request_prefix}.owner.{next(self._counter)}",
            header=header,
            header_bytes=encode_request_header(header),
            body=body,
            connection=ClientConnectionInfo(OWNER, client),
            client=client,
            received_ns=time.monotonic_ns(),
        )
        response = await self._dispatcher.handle(request)
        if response is None:
            return None
        _, at = decode_response_header(key, version, response)
        return response[at:]

    def _salts(self, users: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the users' SCRAM salts in base64, by mechanism.

        A salt is not secret: any client that starts a login gets it.
        """
        salts: dict[str, dict[str, str]] = {}
        for user in users:
            for number, name in MECHANISM_NAMES.items():
                credential = self._parts.security.users.scram_credential(user, number)
                if credential is not None:
                    salt = base64.b64encode(credential.salt).decode()
                    salts.setdefault(user, {})[name] = salt
        return salts
