"""`bridgehead cluster`: kafka-cluster.sh cluster-id and unregister."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import Options, Output, Tool, ToolError, UsageFault, number
from bridgehead.kafka_wire.api_key import ApiKey

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient

_ACTIONS: Final = ("cluster-id", "unregister")


def check(options: Options) -> None:
    """Raise UsageFault if the action is missing, or if `--id` does not fit the action."""
    action = options.text("action")
    if action not in _ACTIONS:
        raise UsageFault("kafka-cluster: error: too few arguments: write cluster-id or unregister.")
    if action == "unregister" and not options.has("id"):
        raise UsageFault("kafka-cluster: error: argument --id/-i is required")
    if action == "cluster-id" and options.has("id"):
        raise UsageFault("kafka-cluster: error: unrecognized arguments: '--id'")


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    if options.text("action") == "unregister":
        _unregister(admin, out)
        return
    cluster_id = admin.describe_cluster().cluster_id
    out.result(cluster_id=cluster_id)
    out.line(
        "No cluster ID found. The Kafka version is probably too old."
        if cluster_id is None
        else f"Cluster ID: {cluster_id}"
    )


def _unregister(admin: AdminClient, out: Output) -> None:
    """Print that the cluster does not support UnregisterBroker. As in Kafka, this is no error.

    Raises:
        ToolError: the cluster is a KRaft cluster.
    """
    responses = [
        version.get() for version in admin.get_all_broker_versions().values() if version.is_success
    ]
    if any(ApiKey.UNREGISTER_BROKER in response.apis for response in responses):
        raise ToolError("This is a KRaft cluster: use kafka-cluster.sh to unregister a broker.")
    out.result(unregistered=False)
    out.line("The target cluster does not support the broker unregistration API.")


TOOL: Final = Tool(
    name="cluster",
    help="Print the cluster's id; unregister is not supported.\n\nWorks like kafka-cluster.sh.",
    options=(number("id", "ID", "The broker to unregister."),),
    run=_run,
    check=check,
    config_option="config",
    actions=_ACTIONS,
)
