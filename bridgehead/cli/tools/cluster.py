"""`bridgehead cluster cluster-id`: kafka-cluster.sh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import Options, Output, Tool, UsageFault

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient


def check(options: Options) -> None:
    """Raise UsageFault without an action."""
    if options.text("action") != "cluster-id":
        raise UsageFault("kafka-cluster: error: too few arguments: write cluster-id.")


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    out.result(cluster_id=cluster_id)
    out.line(
        "No cluster ID found. The Kafka version is probably too old."
        if cluster_id is None
        else f"Cluster ID: {cluster_id}"
    )


TOOL: Final = Tool(
    name="cluster",
    help="Print the cluster's id. As kafka-cluster.sh.",
    options=(),
    run=_run,
    check=check,
    config_option="config",
    actions=("cluster-id",),
)
