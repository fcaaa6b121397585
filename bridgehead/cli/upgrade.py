"""`bridgehead upgrade`: upgrade a running cluster to forwarding in two rolling restarts."""

from __future__ import annotations

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say


def upgrade(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Upgrade to forwarding by two rolling restarts.

    The first makes the brokers support Envelopes, the second makes them forward. For a cluster
    started with inter.broker.protocol.version below 3.4 (and, to act as the previous release,
    bridgehead.envelope.supported=false).
    """
    from bridgehead.cluster.client import ClusterClient
    from bridgehead.cluster.upgrade import BRIDGE, LEVEL
    from bridgehead.cluster.upgrade import upgrade as perform

    if perform(ClusterClient(data_dir), say) == 0:
        say("Nothing to do: every broker forwards already.")
        return
    say(
        f"Every broker forwards now. `bridgehead up` does not remember this: give it\n"
        f"{LEVEL}={BRIDGE} too, or omit the old level."
    )
