"""Requests of clients, as a broker's APIs receive them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from broker_proxy.client_request import AuthorizeFor, ClientConnectionInfo, ClientRequest
from cluster_model.acls.authorization import Authorize
from cluster_model.client import Client


def a_client(**fields: Any) -> Client:
    """An anonymous client on listener PLAINTEXT; `fields` set other fields of Client."""
    defaults: dict[str, Any] = {
        "host": "127.0.0.1",
        "listener_name": "PLAINTEXT",
        "security_protocol": "PLAINTEXT",
        "client_id": "c",
    }
    return Client(**{**defaults, **fields})


def a_request(
    key: int, version: int, body: bytes = b"", *, request_id: str = "r", **fields: Any
) -> ClientRequest:
    """A request of `a_client(**fields)`."""
    client = a_client(**fields)
    header = RequestHeader(key, version, 9, client.client_id)
    head = encode_request_header(header)
    return ClientRequest(
        request_id, header, head, body, ClientConnectionInfo("c", client), client, 0
    )


# `Authorize` functions that follow a fixed rule instead of ACLs.

Rule = Callable[[str, str, str], bool]  # (operation, resource type, resource name)


def authorize_by(rule: Rule | bool) -> Authorize:
    """Return an Authorize that follows the rule and logs nothing."""

    def authorize(operation: str, resource_type: str, name: str, /, **_log: Any) -> bool:
        return rule if isinstance(rule, bool) else rule(operation, resource_type, name)

    return authorize


def authorize_every_client(rule: Rule | bool) -> AuthorizeFor:
    """Return an AuthorizeFor that applies the rule to every client."""
    return lambda request: authorize_by(rule)
