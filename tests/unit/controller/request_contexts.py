"""Clients, contexts and pending requests for tests of the controller."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any

from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.client import Client
from controller.apis.base import RequestContext
from controller.requests.pending_request import PendingRequest
from envelope.messages import RequestIdentity
from tests.unit.broker_proxy.client_requests import Rule, authorize_by

_OF_CLIENTS = {field.name for field in fields(Client)}


def a_client(**others: Any) -> Client:
    """An anonymous client on a plaintext listener; `others` set further fields."""
    values = {"host": "127.0.0.1", "listener_name": "PLAINTEXT", "security_protocol": "PLAINTEXT"}
    return Client(**{**values, **others})


def a_context(
    api_key: int, api_version: int, rule: Rule | bool = True, **others: Any
) -> RequestContext:
    """A context that allows what `rule` allows; `others` set fields of the context or client."""
    client = a_client(**{name: others.pop(name) for name in _OF_CLIENTS & set(others)})
    values: dict[str, Any] = {
        "request_id": "r",
        "api_key": api_key,
        "api_version": api_version,
        "client": client,
        "authorize": authorize_by(rule),
        "random": random.Random(7),
        "now_ms": 0,
    }
    return RequestContext(**{**values, **others})


def a_pending_request(
    reply: Any,
    api: Any = None,
    request: Any = None,
    *,
    key: int = 19,
    version: int = 7,
    **others: Any,
) -> PendingRequest:
    """Broker 1's request with sequence 1; `others` set further fields."""
    values = {
        "identity": RequestIdentity(1, "life", 1),
        "request_id": "r",
        "header": RequestHeader(key, version, 0, None),
        "client": a_client(),
        "random": random.Random(3),
        "deadline_s": 2000.0,
    }
    return PendingRequest(api=api, request=request, reply=reply, **{**values, **others})
