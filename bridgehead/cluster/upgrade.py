"""Upgrades a running cluster to forwarding in two rolling bounces (KIP-590 §Compatibility).

The first bounce gives every broker the release that supports Envelopes; brokers keep writing to
ZooKeeper themselves. The second raises inter.broker.protocol.version; a restarted broker forwards.
Brokers restart one at a time, the controller last. The next broker restarts when all brokers know
each other again. Each step looks at the cluster anew, so an interrupted upgrade continues where it
stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from bridgehead.cluster.control_socket import ControlError
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


Restart = Callable[[int, Mapping[str, str]], Awaitable[dict[str, Any]]]
"""Restarts a broker with other properties; returns when all brokers know each other."""


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


async def upgrade_next(status: Mapping[str, Any], restart: Restart) -> dict[str, Any]:
    """Restart the next broker of an upgrade; return what the operation `/upgrade` returns.

    Raises:
        ClusterError: the broker did not come back, or the cluster is incomplete.
    """
    bounces = plan_bounces(status)
    if not bounces:
        return {"id": None, "remaining": 0}
    bounce, (broker, *_) = bounces[0], bounces[0].brokers
    try:
        done = await restart(broker, bounce.properties)
    except (ClusterError, ControlError, OSError) as failure:
        raise ClusterError(
            f"Bounce {bounce.number} stopped at broker {broker}: {failure} The other brokers "
            f"serve. Correct the cause, start the broker with `bridgehead node start {broker}`, "
            "and run `bridgehead upgrade` again: it continues from there."
        ) from failure
    return {
        "id": broker,
        "bounce": bounce.number,
        "purpose": bounce.purpose,
        "seconds": done["seconds"],
        "pid": done["pid"],
        "controller_id": done["controller_id"],
        "remaining": sum(len(planned.brokers) for planned in bounces) - 1,
    }


def upgrade(step: Callable[[], Mapping[str, Any]], say: Callable[[str], None]) -> int:
    """Perform the remaining steps and describe them; return the number of restarts.

    Raises:
        ClusterError: a step failed.
    """
    restarts = bounce = 0
    while (done := step())["id"] is not None:
        restarts += 1
        if done["bounce"] != bounce:
            bounce = done["bounce"]
            say(f"Bounce {bounce} of 2: {done['purpose']}.")
        say(
            f"  broker {done['id']} is back after {done['seconds']:.1f} s, as pid {done['pid']}; "
            f"the controller is broker {done['controller_id']}."
        )
    return restarts
