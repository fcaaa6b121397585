"""`bridgehead upgrade`: a running cluster goes over the bridge in two rolling bounces."""

from __future__ import annotations

from bridgehead.cli.options import DEFAULT_DATA_DIR, DataDirOption, say


def upgrade(*, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Restart every broker twice, one at a time: to know the Envelope, then to forward.

    For a cluster that was started with inter.broker.protocol.version below 3.4 (and with
    bridgehead.envelope.supported=false, to play the release before).
    """
    from bridgehead.cluster.client import ClusterClient
    from bridgehead.cluster.upgrade import BRIDGE, LEVEL
    from bridgehead.cluster.upgrade import upgrade as perform

    if perform(ClusterClient(data_dir), say) == 0:
        say("Nothing to do: every broker forwards already.")
        return
    say(
        f"Every broker forwards now. `bridgehead up` does not remember it: say "
        f"{LEVEL}={BRIDGE} there too, or leave the old level out."
    )
