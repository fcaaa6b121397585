"""The intended differences between the output of our commands and that of Kafka's tools.

`docs/tools.md` has the reason for each. `as_ours` converts Kafka's output to ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from bridgehead.kafka_wire.apis import UNSERVED
from tests.fidelity.tool_recordings import Output, sorted_blocks


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """Text that Kafka's tool prints, and the text that our command prints in its place.

    Each of these texts may have several lines, all of one stream. `of_brokers`: the brokers differ,
    not the tools, so our command prints Kafka's text if it runs against a real Kafka.
    """

    name: str
    kafka: re.Pattern[str]
    ours: str
    of_brokers: bool


def _row(name: str, kafka: str, ours: str, *, of_brokers: bool = False) -> ToolDifference:
    return ToolDifference(name, re.compile(kafka, re.MULTILINE), ours, of_brokers)


TOOL_DIFFERENCES: Final[tuple[ToolDifference, ...]] = (
    _row("topic-name", r"(?<=: Topic ')Optional\[(.*)\](?=' does not exist)", r"\1"),
    _row(
        "config-reason",
        r"(?<=^Error while executing config command) with args .*\n"
        r"java\.util\.concurrent\.ExecutionException: [\w.]*\.UnknownTopicOrPartitionException:$",
        ": This server does not host this topic-partition.",
    ),
    _row(
        "config-reason",
        r"(?<=^Error while executing config command) with args .*\n"
        r"java\.util\.concurrent\.ExecutionException: [\w.]*",
        "",
    ),
    _row("entity-types", r", client-metrics with a --bootstrap-server or .* argument$", ""),
    _row("java-wrapper", r"java\.util\.concurrent\.ExecutionException: ", ""),
    _row("moves-line", r"(?<=partition moves are active\.)(?=Clearing)", "\n"),
    _row(
        "group-actions",
        r"^Option \[describe\] takes one of these options: \[reset-offsets\].*$",
        "Option [describe] takes one of these options: [all-groups], [group]",
    ),
    _row(
        "usage",
        r"^usage: kafka-(?:cluster|features) .*\n(?:.*\n)*?(?=kafka-(?:cluster|features): error: )",
        "",
    ),
    _row(
        "usage",
        r"(?<=^kafka-cluster: error: too few arguments)$",
        ": write cluster-id or unregister.",
    ),
    _row("offset-commit-in-zookeeper", r"(?<=OffsetCommit\(8\): )0(?= to )", "1", of_brokers=True),
    _row("unsupported-apis", r",?\n\t\w+\(\d+\): UNSUPPORTED(?=,?$)", ""),
)
_SERVED_BY_KAFKA: Final = re.compile(r"\t\w+\((\d+)\): \d.*\]")
_HINT: Final = re.compile(r"`bridgehead [\w-]+ --help` lists the options\.")


def as_ours(output: Output, *, on_kafka: bool = False) -> tuple[Output, set[str]]:
    """Return what our command is expected to print, and the differences that applied.

    `on_kafka`: our command runs against a real Kafka. Our brokers do not list the APIs that only a
    Kafka serves (docs/apis.md).
    """
    used: set[str] = set()
    lines, rows = output.stdout, TOOL_DIFFERENCES
    if on_kafka:
        rows = tuple(row for row in rows if not row.of_brokers)
    else:
        lines = [line for line in lines if _key(line) not in UNSERVED]
    stdout = _changed(lines, rows, used)
    stderr = _changed(output.stderr, rows, used)
    return Output(sorted_blocks(stdout), stderr, output.status), used


def _changed(lines: list[str], rows: Iterable[ToolDifference], used: set[str]) -> list[str]:
    text = "\n".join(lines)
    for row in rows:
        text, count = row.kafka.subn(row.ours, text)
        if count:
            used.add(row.name)
    return text.split("\n") if text else []


def _key(line: str) -> int | None:
    match = _SERVED_BY_KAFKA.match(line)
    return int(match[1]) if match else None


def without_hint(lines: Collection[str]) -> list[str]:
    """Return the lines without the hint to use --help; Kafka's tools print their help instead."""
    return [line for line in lines if not _HINT.fullmatch(line)]
