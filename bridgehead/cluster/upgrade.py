"""The way of a running cluster over the bridge: two rolling bounces (KIP-590, Compatibility).

Read first: the first bounce gives every broker the release that knows the Envelope; it goes on
writing to ZooKeeper itself. The second raises inter.broker.protocol.version, and from its restart
on a broker forwards. One broker at a time, the controller last; the next one is touched when all
know each other again. What is done already is not done again, so whoever was interrupted types the
command once more.
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
    """One rolling restart: which brokers, in which order, and what they are told."""

    number: int
    purpose: str
    properties: Mapping[str, str]
    brokers: tuple[int, ...]


class Client(Protocol):
    """What an upgrade asks of a running cluster; see ClusterClient."""

    def status(self) -> dict[str, Any]:
        """Phase, controller, and every broker's condition and state."""
        ...

    def restart_node(self, node_id: int, properties: Mapping[str, str]) -> dict[str, Any]:
        """Restarts a broker with other properties; waits until all know each other."""
        ...


def plan_bounces(status: Mapping[str, Any]) -> tuple[Bounce, ...]:
    """What is left to do, of a cluster's `status`; empty when every broker forwards.

    Raises:
        ClusterError: a broker is not there: an upgrade takes one away at a time, and no more.
    """
    states: dict[int, Mapping[str, Any]] = {}
    for broker in status["brokers"]:
        if broker["condition"] != "running" or broker["state"] is None:
            raise ClusterError(
                f"Broker {broker['id']} is {_condition(broker)}: an upgrade restarts one broker at "
                f"a time and needs all others; start it with `bridgehead node start "
                f"{broker['id']}`, then try again."
            )
        states[broker["id"]] = broker["state"]
    if status["controller_id"] is None:
        raise ClusterError(
            "No controller is in office now: try again when `bridgehead status` shows one."
        )
    last = status["controller_id"]
    order = sorted(states, key=lambda broker: (broker == last, broker))
    old = tuple(each for each in order if not states[each]["envelope_supported"])
    below = tuple(each for each in order if states[each]["writes_directly"])
    bounces = (
        Bounce(1, "the release that knows the Envelope", {ENVELOPE: "true"}, old),
        Bounce(2, f"{LEVEL}={BRIDGE}", {ENVELOPE: "true", LEVEL: BRIDGE}, below),
    )
    return tuple(bounce for bounce in bounces if bounce.brokers)


def _condition(broker: Mapping[str, Any]) -> str:
    return str(broker["condition"]) if broker["condition"] != "running" else "silent"


def upgrade(client: Client, say: Callable[[str], None]) -> int:
    """Performs what is left; returns how many restarts that took.

    Raises:
        ClusterError: a broker did not come back, or the cluster is not whole to begin with.
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
                    f"brokers serve; mend it, start it with `bridgehead node start {broker}`, and "
                    "type `bridgehead upgrade` again, which goes on from there."
                ) from failure
            restarts += 1
            say(
                f"  {count} of {len(bounce.brokers)}: broker {broker} is back after "
                f"{done['seconds']:.1f} s, as pid {done['pid']}; the controller is broker "
                f"{done['controller_id']}."
            )
    return restarts
