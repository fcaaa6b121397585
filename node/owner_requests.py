"""What the owner of a data directory asks of a node over its control socket, as a client would.

Whoever may open that socket can read the node's keys: it needs no password, and says in whose name
it asks. Everything else is as for any client: checked, authorized, forwarded, in the evidence.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridgehead.cluster.control_socket import ControlError
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.authentication.user_credentials import UserCredentialCache
from broker_proxy.dispatch import Dispatcher
from broker_proxy.logins import Listener
from cluster_model.principal import KafkaPrincipal
from cluster_model.scram import MECHANISM_NAMES

_LOOPBACK: Final = b"\x7f\0\0\1"


class OwnerRequests:
    """Of one node. The connection they come over is named `owner`."""

    def __init__(
        self, dispatcher: Dispatcher, users: UserCredentialCache, prefix: str, listener: Listener
    ) -> None:
        """`prefix` is the node's own for request ids; `listener` lends its name and dialect."""
        self._dispatcher = dispatcher
        self._users = users
        self._prefix = prefix
        self._listener = listener
        self._counter = itertools.count(1)

    async def ask(self, asker: str, key: int, version: int, body: bytes) -> bytes | None:
        """Return the answer's body; None: a client's connection would have been closed."""
        kind, _, name = asker.partition(":")
        header = RequestHeader(key, version, 0, "owner")
        request = ClientRequest(
            request_id=f"{self._prefix}.owner.{next(self._counter)}",
            header=header,
            header_bytes=encode_request_header(header),
            body=body,
            connection=ClientConnectionInfo(
                connection_id="owner",
                listener_name=self._listener.name,
                security_protocol=self._listener.security_protocol,
                dialect=self._listener.dialect,
                client_host="127.0.0.1",
                client_address=_LOOPBACK,
                principal=KafkaPrincipal(kind, name),
            ),
            received_ns=time.monotonic_ns(),
        )
        answer = await self._dispatcher.answer(request)
        if answer is None:
            return None
        _, at = decode_response_header(key, version, answer)
        return answer[at:]

    def salts(self, users: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the salts that this broker knows of users, by mechanism, in base64.

        A salt is no secret: whoever begins to log in is told it.
        """
        found: dict[str, dict[str, str]] = {}
        for user in users:
            for number, name in MECHANISM_NAMES.items():
                credential = self._users.scram_credential(user, number)
                if credential is not None:
                    salt = base64.b64encode(credential.salt).decode()
                    found.setdefault(user, {})[name] = salt
        return found

    async def obey(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Carry out a command that is one of these; None: it is another."""
        match message:
            case {
                "command": "request",
                "asker": str() as asker,
                "api_key": int() as key,
                "api_version": int() as version,
                "body": str() as body,
            }:
                try:
                    answer = await self.ask(asker, key, version, base64.b64decode(body))
                except (WireError, binascii.Error):
                    answer = None
                if answer is None:
                    raise ControlError(f"API {key} in version {version} was not understood")
                return {"body": base64.b64encode(answer).decode()}
            case {"command": "scram_salts", "users": list() as users}:
                return {"salts": self.salts(users)}
        return None
