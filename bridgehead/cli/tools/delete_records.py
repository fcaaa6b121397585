"""`bridgehead delete-records`: kafka-delete-records.sh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.json_files import elements, field, parse_json, twice
from bridgehead.cli.tools.tool import Options, Output, Tool, ToolError, need, read_text, text

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, TopicPartition


def check(options: Options) -> None:
    """Raise UsageFault if the file is missing."""
    need(options, "offset-json-file")


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Return the offset of each partition in a JSON file. Raises ToolError."""
    from bridgehead.admin import TopicPartition

    document = parse_json(text)
    if "partitions" not in document:
        raise ToolError("Missing partitions field")
    pairs = [
        (
            TopicPartition(field(element, "topic", str), field(element, "partition", int)),
            field(element, "offset", int),
        )
        for element in elements(document, "partitions")
    ]
    duplicates = ",".join(
        f"{partition.topic}-{partition.partition}"
        for partition in twice(partition for partition, _ in pairs)
    )
    if duplicates:
        raise ToolError(f"Offset json file contains duplicate topic partitions: {duplicates}")
    return dict(pairs)


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.cli.tools.connection import java_text

    offsets = parse_offsets(read_text(options.needed("offset-json-file")))
    out.line("Executing records delete operation")
    results = admin.delete_records(offsets)
    out.line("Records delete operation completed:")
    out.result(partitions=[])
    for partition, result in results.items():
        name = f"{partition.topic}-{partition.partition}"
        if result.error is None:
            out.line(f"partition: {name}\tlow_watermark: {result.get()}")
        else:
            out.line(f"partition: {name}\terror: {java_text(result.error)}")
        out.document["partitions"].append(
            {
                **partition._asdict(),
                "low_watermark": result.get() if result.is_success else None,
                "error": None if result.error is None else str(result.error),
            }
        )


TOOL: Final = Tool(
    name="delete-records",
    help="Delete the records before an offset.\n\nWorks like kafka-delete-records.sh.",
    options=(
        text(
            "offset-json-file",
            "FILE",
            'Offsets, as {"partitions": [{"topic": "a", "partition": 0, "offset": 0}]}. Offset -1 '
            "deletes all records.",
        ),
    ),
    run=_run,
    check=check,
)
