"""The context of a request as the decisions are given it: everything that its body does not say."""

from __future__ import annotations

import random
from typing import Any

from cluster_model.principal import ANONYMOUS
from controller.apis.base import RequestContext
from tests.unit.authorizing import Rule, saying


def a_context(
    api_key: int, api_version: int, rule: Rule | bool = True, **others: Any
) -> RequestContext:
    """A stranger's request on a plain listener, allowed what `rule` says; `others` are fields."""
    fields: dict[str, Any] = {
        "request_id": "r",
        "dialect": "shipped",
        "principal": ANONYMOUS,
        "client_host": "127.0.0.1",
        "client_id": None,
        "listener_name": "PLAINTEXT",
        "security_protocol": "PLAINTEXT",
        "authorize": saying(rule),
        "random": random.Random(7),
        "now_ms": 0,
    }
    return RequestContext(api_key=api_key, api_version=api_version, **{**fields, **others})
