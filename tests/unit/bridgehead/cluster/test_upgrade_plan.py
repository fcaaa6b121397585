"""The two rolling restarts (bounces) of an upgrade: their order and their errors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.upgrade import BRIDGE, ENVELOPE, LEVEL, plan_bounces, upgrade, upgrade_next


class Brokers:
    """A cluster whose brokers restart immediately, but the restart of `fails` is an error."""

    def __init__(self, count: int = 3, controller: int | None = 2, fails: int = 0) -> None:
        self.controller, self.fails = controller, fails
        self.properties = {
            number: {LEVEL: "3.3", ENVELOPE: "false"} for number in range(1, count + 1)
        }
        self.conditions = dict.fromkeys(self.properties, "running")
        self.restarted: list[tuple[int, str, str]] = []

    def status(self) -> dict[str, Any]:
        brokers = [
            {
                "id": node,
                "condition": self.conditions[node],
                "state": {
                    "envelope_supported": properties_of_node[ENVELOPE] == "true",
                    "writes_directly": properties_of_node[LEVEL] == "3.3",
                },
            }
            for node, properties_of_node in self.properties.items()
        ]
        return {"controller_id": self.controller, "brokers": brokers}

    def step(self) -> dict[str, Any]:
        """Perform the next step, like the supervisor."""
        return asyncio.run(upgrade_next(self.status(), self.restart))

    async def restart(self, node_id: int, properties: Mapping[str, str]) -> dict[str, Any]:
        if node_id == self.fails:
            raise ClusterError(f"Broker {node_id} did not serve within 60 s.")
        properties_of_node = self.properties[node_id]
        properties_of_node |= properties
        self.restarted.append((node_id, properties_of_node[LEVEL], properties_of_node[ENVELOPE]))
        return {"seconds": 0.5, "pid": 7, "controller_id": self.controller}


def test_upgrade_restarts_each_broker_twice_and_the_controller_last() -> None:
    """Bounce 1 enables Envelopes; bounce 2 raises inter.broker.protocol.version.

    A second upgrade restarts no broker.
    """
    brokers = Brokers()
    messages: list[str] = []
    assert upgrade(brokers.step, messages.append) == 6
    first, second = brokers.restarted[:3], brokers.restarted[3:]
    assert first == [(number, "3.3", "true") for number in (1, 3, 2)]
    assert second == [(number, BRIDGE, "true") for number in (1, 3, 2)]
    assert [line[:13] for line in messages if line.startswith("Bounce")] == [
        "Bounce 1 of 2",
        "Bounce 2 of 2",
    ]
    assert upgrade(brokers.step, messages.append) == 0


def test_step_tells_which_broker_was_restarted_and_how_many_are_left() -> None:
    brokers = Brokers(controller=1)
    steps = [brokers.step() for _ in range(7)]
    assert [(step["id"], step.get("bounce"), step["remaining"]) for step in steps] == [
        *((2, 1, 5), (3, 1, 4), (1, 1, 3)),
        *((2, 2, 2), (3, 2, 1), (1, 2, 0)),
        (None, None, 0),
    ]


def test_interrupted_upgrade_resumes() -> None:
    """Broker 3 does not come back; the error names the next commands."""
    brokers = Brokers(fails=3)
    with pytest.raises(ClusterError, match=r"Bounce 1 stopped at broker 3: .*start 3`.*continues"):
        upgrade(brokers.step, lambda _: None)
    brokers.fails = 0
    assert [bounce.brokers for bounce in plan_bounces(brokers.status())] == [(3, 2), (1, 3, 2)]
    assert upgrade(brokers.step, lambda _: None) == 5


def test_upgrade_needs_every_broker_and_a_controller() -> None:
    brokers = Brokers()
    brokers.conditions[1] = "killed"
    with pytest.raises(ClusterError, match=r"Broker 1 is killed: .*`bridgehead node start 1`"):
        upgrade(brokers.step, lambda _: None)
    with pytest.raises(ClusterError, match="There is no active controller"):
        upgrade(Brokers(controller=None).step, lambda _: None)
