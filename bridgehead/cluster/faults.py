"""Fault rules of a running cluster, for programs and tests (docs/guides/fault-rules.md)."""

from __future__ import annotations

from typing import Any

from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.errors import HIDE_FROM_PYTEST

__tracebackhide__ = HIDE_FROM_PYTEST


class Faults:
    """The fault rules of all brokers. Brokers need the property `bridgehead.faults.allow=true`.

    name = cluster.faults.add("error", error="NOT_CONTROLLER", api="CreateTopics")
    ...
    assert cluster.faults.hits(name) == 1
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def add(self, action: str, *, broker: int | None = None, **fields: Any) -> str:
        """Add a rule to one broker, or to all running ones; return its name.

        Args:
            action: error, delay, drop, close, duplicate or truncate.
            broker: the only broker that gets the rule; None: all brokers.
            fields: side, phase, error, delay_ms, jitter_ms, api, versions, client_id, principal,
                topic, nth, times, count, probability, as in docs/guides/fault-rules.md.

        Raises:
            ClusterError: the rule is invalid, or a broker does not allow fault rules.
        """
        rule = {"action": action, **fields}
        return str(self._client.add_fault(rule, broker)["name"])

    def list(self) -> list[dict[str, Any]]:
        """Return each rule of each broker: `broker`, `name`, `rule`, `matches` and `hits`."""
        return list(self._client.list_faults()["rules"])

    def hits(self, name: str) -> int:
        """Return how often a rule has acted, summed over the brokers."""
        return sum(int(rule["hits"]) for rule in self.list() if rule["name"] == name)

    def remove(self, name: str | None = None) -> int:
        """Remove one rule, or all; return how many were removed, summed over the brokers.

        Raises:
            ClusterError: no broker has this rule.
        """
        return int(self._client.remove_faults(name)["removed"])
