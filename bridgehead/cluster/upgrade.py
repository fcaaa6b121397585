"""Upgrades a running cluster to forwarding in two rolling bounces (KIP-590 §Compatibility).

The first bounce gives every broker the release that supports Envelopes; brokers keep writing to
ZooKeeper themselves. The second raises inter.broker.protocol.version; a restarted broker forwards.
Brokers restart one at a time, the controller last. The next broker restarts when all brokers know
each other again. After an interruption the upgrade can be run again: it skips completed steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from bridgehead.cluster.errors import ClusterError

ENVELOPE: Final = "bridgehead.envelope.supported"
LEVEL: Final = "inter.broker.protocol.version"
BRIDGE: Final = "3.4-IV0"


@dataclasses.dataclass(frozen=True, slots=True)
class Bounce:
    """One rolling restart: the brokers in their order, and their new properties."""

    number: int
    purpose: str
    properties: Mapping[str, str]
    brokers: tuple[int, ...]


class UpgradeCommands(Protocol):
    """The commands that an upgrade uses; see ClusterClient."""

    def status(self) -> dict[str, Any]:
        """Return phase, controller, and every broker's condition and state."""
        ...

    def restart_node(self, node_id: int, properties: Mapping[str, str]) -> dict[str, Any]:
        """Restart a broker with other properties; return when all brokers know each other."""
        ...


def plan_bounces(status: Mapping[str, Any]) -> tuple[Bounce, ...]:
    """Return the remaining bounces for a cluster's `status`; empty when every broker forwards.

    Raises:
        ClusterError: a broker is down, or there is no controller.
    """
    states: dict[int, Mapping[str, Any]] = {}
    for broker in status["brokers"]:
        if broker["condition"] != "running" or broker["state"] is None:
            raise ClusterError(
                f"Broker {broker['id']} is {_condition(broker)}: an upgrade restarts one broker at "
                f"a time and needs all others; wait until it answers, or start it with "
                f"`bridgehead node start {broker['id']}`, then try again."
            )
        states[broker["id"]] = broker["state"]
    if status["controller_id"] is None:
        raise ClusterError(
            "There is no active controller: try again when `bridgehead status` shows one."
        )
    last = status["controller_id"]
    order = sorted(states, key=lambda broker: (broker == last, broker))
    old = tuple(state for state in order if not states[state]["envelope_supported"])
    below = tuple(state for state in order if states[state]["writes_directly"])
    bounces = (
        Bounce(1, "the release that supports Envelopes", {ENVELOPE: "true"}, old),
        Bounce(2, f"{LEVEL}={BRIDGE}", {ENVELOPE: "true", LEVEL: BRIDGE}, below),
    )
    return tuple(bounce for bounce in bounces if bounce.brokers)


def _condition(broker: Mapping[str, Any]) -> str:
    return str(broker["condition"]) if broker["condition"] != "running" else "not answering"


def upgrade(client: UpgradeCommands, say: Callable[[str], None]) -> int:
    """Perform the remaining bounces; return the number of restarts.

    Raises:
        ClusterError: a broker did not come back, or the cluster was incomplete.
    """
    restarts = 0
    while bounces := plan_bounces(client.status()):
        bounce = bounces[0]
        say(f"Bounce {bounce.number} of 2: {bounce.purpose}, {len(bounce.brokers)} brokers.")
        for count, broker in enumerate(bounce.brokers, 1):
            try:
                done = client.restart_node(broker, bounce.properties)
            except ClusterError as failure:
                raise ClusterError(
                    f"Bounce {bounce.number} stopped at broker {broker}: {failure} The other "
                    f"brokers serve. Correct the cause, start the broker with `bridgehead node "
                    f"start {broker}`, and run `bridgehead upgrade` again: it continues from there."
                ) from failure
            restarts += 1
            say(
                f"  {count} of {len(bounce.brokers)}: broker {broker} is back after "
                f"{done['seconds']:.1f} s, as pid {done['pid']}; the controller is broker "
                f"{done['controller_id']}."
            )
    return restarts
