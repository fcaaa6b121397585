"""`bridgehead broker-api-versions`: kafka-broker-api-versions.sh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bridgehead.cli.tools.tool import Options, Output, Tool

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, ApiVersionRange, Node, NodeApiVersions


def check(options: Options) -> None:
    """Accept every command line: there are no options."""


def api_text(api: ApiVersionRange) -> str:
    """Return an API with its versions.

    `usable` is the newest version that both the broker and this client support. It is None if the
    client does not know the API or supports none of the broker's versions.
    """
    versions = (
        str(api.min_version)
        if api.min_version == api.max_version
        else f"{api.min_version} to {api.max_version}"
    )
    name = api.name.partition("(")[0]  # UNKNOWN(99): an API that the client does not have
    usable = "" if api.usable is None else f" [usable: {api.usable}]"
    return f"{name}({api.api_key}): {versions}{usable}"


def node_text(node: Node) -> str:
    """Return a broker in Kafka's words."""
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'})"


def broker_text(node: Node, versions: NodeApiVersions) -> str:
    """Return the lines of one broker, an API per line."""
    apis = ",\n".join(f"\t{api_text(api)}" for _, api in sorted(versions.apis.items()))
    return f"{node_text(node)} -> (\n{apis}\n)"


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    out.result(brokers=[])
    for node, result in sorted(admin.get_all_broker_versions().items()):
        document: dict[str, Any] = {**node._asdict(), "apis": None, "error": None}
        if result.error is not None:
            out.line(f"{node_text(node)} -> ERROR: {result.error}")
            document["error"] = str(result.error)
        else:
            versions = result.get()
            out.line(broker_text(node, versions))
            document["apis"] = [api._asdict() for _, api in sorted(versions.apis.items())]
        out.document["brokers"].append(document)


TOOL: Final = Tool(
    name="broker-api-versions",
    help="List each broker's APIs and versions.\n\nWorks like kafka-broker-api-versions.sh.",
    options=(),
    run=_run,
    check=check,
)
