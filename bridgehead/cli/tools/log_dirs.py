"""`bridgehead log-dirs`: kafka-log-dirs.sh."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from bridgehead.cli.tools.tool import Option, Options, Output, Tool, ToolError, need, text

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, LogDirDescription, Try


def check(options: Options) -> None:
    """Raise UsageFault if --describe is missing."""
    need(options, "describe")


def parse_brokers(text: str) -> set[int]:
    """Parse ids such as `1,2`. Raises ToolError."""
    try:
        return {int(part) for part in text.split(",") if part}
    except ValueError:
        raise ToolError(f"{text!r} is not a list of broker ids: write 1,2.") from None


def directories(
    log_dirs_of_broker: Mapping[int, Mapping[str, Try[LogDirDescription]]], topics: Collection[str]
) -> dict[str, Any]:
    """Return the document that the tool prints. If `topics` is empty, it shows all replicas."""
    from bridgehead.admin import KafkaError
    from bridgehead.cli.tools.connection import java_name

    brokers = []
    for broker, log_dirs in sorted(log_dirs_of_broker.items()):
        listed = []
        for path, result in sorted(log_dirs.items()):
            replicas = result.get().replicas if result.is_success else {}
            error = result.error
            name = java_name(error.code) if isinstance(error, KafkaError) else None
            partitions = [
                {
                    "partition": f"{replica.topic}-{replica.partition}",
                    "size": info.size,
                    "offsetLag": info.offset_lag,
                    "isFuture": info.is_future,
                }
                for replica, info in sorted(replicas.items())
                if not topics or replica.topic in topics
            ]
            listed.append({"partitions": partitions, "error": name, "logDir": path})
        brokers.append({"broker": broker, "logDirs": listed})
    return {"brokers": brokers, "version": 1}


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    topics = {word for word in (options.text("topic-list") or "").split(",") if word}
    wanted = parse_brokers(options.text("broker-list") or "")
    live = {node.id for node in admin.describe_cluster().nodes}
    unknown = wanted - live
    if unknown:
        raise ToolError(
            f"ERROR: The given brokers do not exist from --broker-list: {_joined(unknown)}. "
            f"Current existent brokers: {_joined(live)}"
        )
    brokers = sorted(wanted or live)
    out.line("Querying brokers for log directories information")
    log_dirs_of_broker = {
        broker: result.get() for broker, result in admin.describe_log_dirs(brokers).items()
    }
    out.line(f"Received log directory information from brokers {_joined(brokers)}")
    document = directories(log_dirs_of_broker, topics)
    out.line(json.dumps(document, separators=(",", ":")))
    out.result(brokers=document["brokers"])


def _joined(brokers: Collection[int]) -> str:
    return ",".join(map(str, sorted(brokers)))


TOOL: Final = Tool(
    name="log-dirs",
    help="Describe the brokers' log directories.\n\nWorks like kafka-log-dirs.sh.",
    options=(
        Option("describe", "Describe the directories."),
        text("topic-list", "TOPIC,...", "Show only replicas of these topics."),
        text("broker-list", "ID,...", "Show only these brokers."),
    ),
    run=_run,
    check=check,
    defaults={"client.id": "log-dirs-tool"},
)
