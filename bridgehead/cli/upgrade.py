"""`bridgehead upgrade`: upgrade a running cluster to forwarding in two rolling restarts."""

from __future__ import annotations

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say


def upgrade(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Upgrade to forwarding in two rolling restarts.

    After the first restart, the brokers support Envelopes. After the second restart, they forward
    requests.

    Start the cluster with inter.broker.protocol.version below 3.4. To simulate the release before
    the bridge release, also set bridgehead.envelope.supported=false.
    """
    from bridgehead.cluster.client import ControlClient
    from bridgehead.cluster.upgrade import BRIDGE, LEVEL
    from bridgehead.cluster.upgrade import upgrade as perform

    if perform(ControlClient(data_dir).upgrade_next, say) == 0:
        say("Nothing to do: every broker forwards already.")
        return
    say(
        f"Every broker forwards now. `bridgehead up` does not store this: at the next start\n"
        f"set {LEVEL}={BRIDGE}, or omit this property."
    )
