"""`bridgehead leader-election`: kafka-leader-election.sh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.json_files import elements, field, parse_json, twice
from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    number,
    read_text,
    text,
)

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, TopicPartition

_TYPES: Final = ("preferred", "unclean")
_SCOPES: Final = ("topic", "all-topic-partitions", "path-to-json-file")


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's LeaderElectionCommandOptions."""
    if not options.has("election-type"):
        raise UsageFault("Missing required option(s): election-type")
    chosen = options.needed("election-type")
    if chosen.lower() not in _TYPES:
        raise UsageFault(f"Cannot parse argument '{chosen}' of option election-type")
    if len(options.used(_SCOPES)) != 1:
        raise UsageFault(
            f"One and only one of the following options is required: {', '.join(_SCOPES)}"
        )
    if options.has("topic") and not options.has("partition"):
        raise UsageFault("Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise UsageFault("Option partition is only allowed if topic is used")


def parse_partitions(text: str) -> list[TopicPartition]:
    """Return the partitions in a JSON file. Raises ToolError."""
    from bridgehead.admin import TopicPartition

    document = parse_json(text)
    if "partitions" not in document:
        raise ToolError('Replica election data is missing "partitions" field')
    partitions = [
        TopicPartition(field(element, "topic", str), field(element, "partition", int))
        for element in elements(document, "partitions")
    ]
    duplicates = twice(partitions)
    if duplicates:
        names = ", ".join(f"{duplicate.topic}-{duplicate.partition}" for duplicate in duplicates)
        raise ToolError(f"Replica election data contains duplicate partitions: [{names}]")
    return partitions


def _partitions(options: Options) -> list[TopicPartition] | None:
    """Return the partitions that the options name; None means all."""
    from bridgehead.admin import TopicPartition

    if options.has("path-to-json-file"):
        return parse_partitions(read_text(options.needed("path-to-json-file")))
    if options.has("topic"):
        return [TopicPartition(options.needed("topic"), options.number("partition") or 0)]
    return None


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import ElectionType, ErrorCode, KafkaError
    from bridgehead.cli.tools.connection import java_text

    kind = options.needed("election-type").upper()
    wanted = _partitions(options)
    try:
        results = admin.elect_leaders(ElectionType[kind], wanted)
    except KafkaError as error:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            out.line("Not authorized to perform leader election")
            raise ToolError("Not authorized to perform leader election") from None
        raise
    elected, valid, failed = [], [], {}
    for partition, result in results.items():
        name = f"{partition.topic}-{partition.partition}"
        if result is None:
            elected.append(name)
        elif isinstance(result, KafkaError) and result.code == ErrorCode.ELECTION_NOT_NEEDED:
            valid.append(name)
        else:
            failed[name] = result
    out.result(
        elected=elected,
        not_needed=valid,
        failed={name: str(reason) for name, reason in failed.items()},
    )
    if elected:
        out.line(
            f"Successfully completed leader election ({kind}) for partitions {', '.join(elected)}"
        )
    if valid:
        out.line(f"Valid replica already elected for partitions {', '.join(valid)}")
    for name, reason in failed.items():
        out.line(
            f"Error completing leader election ({kind}) for partition: {name}: {java_text(reason)}"
        )
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")


TOOL: Final = Tool(
    name="leader-election",
    help="Elect leaders of partitions.\n\nWorks like kafka-leader-election.sh.",
    options=(
        text("election-type", "TYPE", "preferred or unclean."),
        text("topic", "TOPIC", "With --partition: the topic of the partition."),
        number("partition", "N", "With --topic: the number of the partition."),
        Option("all-topic-partitions", "All eligible partitions."),
        text(
            "path-to-json-file",
            "FILE",
            'Partitions, as {"partitions":[{"topic":"a","partition":0}]}.',
        ),
    ),
    run=_run,
    check=check,
    config_option="admin.config",
    defaults={"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"},
)
