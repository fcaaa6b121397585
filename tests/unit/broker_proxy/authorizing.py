"""`Authorize` functions that follow a fixed rule instead of ACLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker_proxy.apis.base import AuthorizeFor
from cluster_model.acls.authorization import Authorize

Rule = Callable[[str, str, str], bool]  # (operation, resource type, resource name)


def authorize_by(rule: Rule | bool) -> Authorize:
    """Return an Authorize that follows the rule and logs nothing."""

    def authorize(operation: str, resource_type: str, name: str, /, **_log: Any) -> bool:
        return rule if isinstance(rule, bool) else rule(operation, resource_type, name)

    return authorize


def authorize_every_client(rule: Rule | bool) -> AuthorizeFor:
    """Return an AuthorizeFor that applies the rule to every client."""
    return lambda request: authorize_by(rule)
