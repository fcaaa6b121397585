"""Offsets in `bridgehead groups`: --describe, --reset-offsets and --delete-offsets."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bridgehead.cli.tools.tool import Option, Options, Output, ToolError, UsageFault, number, texts

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, GroupDescription, TopicPartition

_RESETS: Final = ("to-earliest", "to-latest", "to-current", "to-offset", "shift-by")
_MISSING: Final = "-"
_WIDTH: Final = 15  # the least width of a column
_RESETTABLE: Final = ("Empty", "Dead")

_COLUMNS: Final = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)

OPTIONS: Final = (
    Option("reset-offsets", "Set the committed offsets of groups without members."),
    Option("delete-offsets", "Delete committed offsets of topics."),
    texts("topic", "TOPIC[:PARTITION,...]", "A topic, or some of its partitions; may be repeated."),
    Option("all-topics", "With --reset-offsets: every topic with a committed offset."),
    Option("to-earliest", "With --reset-offsets: the first offset."),
    Option("to-latest", "With --reset-offsets: the end of the log."),
    Option(
        "to-current",
        "With --reset-offsets: the committed offset, or the end of the log if there is none.",
    ),
    number(
        "to-offset", "OFFSET", "With --reset-offsets: this offset, or the nearest one in the log."
    ),
    number(
        "shift-by",
        "N",
        "With --reset-offsets: the committed offset plus N, or the nearest one in the log.",
    ),
    Option("dry-run", "With --reset-offsets: only show the new offsets (the default)."),
    Option("execute", "With --reset-offsets: commit the new offsets."),
)


class Position(NamedTuple):
    """One row of --describe. `committed` and `end` are None if there is no such offset."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    member_id: str = _MISSING
    host: str = _MISSING
    client_id: str = _MISSING

    @property
    def lag(self) -> int | None:
        """The number of records after the committed offset; None if it is unknown."""
        if self.committed is None or self.end is None:
            return None
        return self.end - self.committed


def check(options: Options) -> None:
    """Raise UsageFault unless the options about offsets fit together."""
    if options.has("reset-offsets"):
        if not options.used(("group", "all-groups")):
            raise UsageFault(
                "Option [reset-offsets] takes one of these options: [all-groups], [group]"
            )
        if len(options.used(("topic", "all-topics"))) != 1:
            raise UsageFault(
                "Option [reset-offsets] takes one of these options: [all-topics], [topic]"
            )
        if len(options.used(_RESETS)) != 1:
            names = ", ".join(f"[{choice}]" for choice in sorted(_RESETS))
            raise UsageFault(f"Option [reset-offsets] takes exactly one of these options: {names}")
        if options.has("dry-run") and options.has("execute"):
            raise UsageFault("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if options.has("delete-offsets") and not (options.texts("group") and options.texts("topic")):
        raise UsageFault("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.has("delete-offsets") and len(options.texts("group")) > 1:
        raise UsageFault("Option [delete-offsets] takes one group")
    for name in options.texts("topic"):
        if not all(part.isdigit() for part in name.partition(":")[2].split(",") if ":" in name):
            raise UsageFault(f"Invalid partitions of a topic: '{name}'")


def positions(admin: AdminClient, group: GroupDescription) -> list[Position]:
    """Return rows for assigned partitions, then for those that only have a committed offset."""
    from bridgehead.admin import LATEST

    committed = {
        key: group_offset.offset
        for key, group_offset in admin.list_group_offsets(group.group_id).items()
    }
    assigned = {key: member for member in group.members for key in _assigned(member.assignment)}
    every = [*assigned, *(key for key in sorted(committed) if key not in assigned)]
    ends = admin.list_offsets(dict.fromkeys(every, LATEST)) if every else {}
    rows = []
    for key in every:
        end = ends[key]
        row = Position(
            key.topic,
            key.partition,
            committed.get(key),
            None if end.error is not None else end.get().offset,
        )
        if member := assigned.get(key):
            row = row._replace(
                member_id=member.member_id, host=member.client_host, client_id=member.client_id
            )
        rows.append(row)
    return rows


def _assigned(assignment: bytes) -> list[TopicPartition]:
    """Return the partitions of an assignment; [] unless it has the format of Kafka's consumers."""
    from bridgehead.admin import TopicPartition

    partitions = []
    try:
        _, topics = struct.unpack_from(">hi", assignment, 0)
        at = 6
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", assignment, at)
            topic = assignment[at + 2 : at + 2 + length].decode()
            (count,) = struct.unpack_from(">i", assignment, at + 2 + length)
            at += 6 + length
            numbers = struct.unpack_from(f">{count}i", assignment, at)
            partitions += [TopicPartition(topic, number) for number in numbers]
            at += 4 * count
    except (struct.error, UnicodeDecodeError):
        return []
    return sorted(partitions)


def position_lines(group: str, rows: Sequence[Position]) -> list[str]:
    """Return the table of --describe; no lines if there are no rows."""
    if not rows:
        return []
    table = [_COLUMNS]
    for row in rows:
        offsets = (_text(row.committed), _text(row.end), _text(row.lag))
        member = (row.member_id, row.host, row.client_id)
        table.append((group, row.topic, str(row.partition), *offsets, *member))
    widths = [max(_WIDTH, *(len(row[column]) for row in table)) for column in range(8)]
    widths[2:6] = [10, _WIDTH, _WIDTH, _WIDTH]
    return [
        "",
        *(
            " ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[8]]
            )
            for row in table
        ),
    ]


def _text(offset: int | None) -> str:
    return _MISSING if offset is None else str(offset)


def reset(admin: AdminClient, options: Options, out: Output) -> None:
    """Show the new offsets of each group; with --execute, commit them.

    As in Kafka's tool, the command prints an error for a group with members, and goes on with the
    next group.
    """
    names = options.texts("group")
    if options.has("all-groups"):
        all_groups = [
            any_group for result in admin.get_all_groups().values() for any_group in result.get()
        ]
        names = sorted(
            listed_group.group_id
            for listed_group in all_groups
            if listed_group.protocol_type in ("consumer", "")
        )
    out.result(groups=[], failed={})
    rows = [_reset_row("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    for group in names:
        state = admin.get_group_information(group).state
        if state not in _RESETTABLE:
            reason = (
                f"Assignments can only be reset if the group '{group}' is inactive, "
                f"but the current state is {state}."
            )
            out.line(f"\nError: {reason}")
            out.document["failed"][group] = reason
            continue
        offsets = new_offsets(admin, group, options)
        if options.has("execute"):
            for key, error in admin.alter_group_offsets(group, offsets).items():
                if error is not None:
                    raise ToolError(f"{key.topic}-{key.partition}: {error}")
        for key, offset in offsets.items():
            out.document["groups"].append(
                {"group_id": group, **key._asdict(), "new_offset": offset}
            )
            rows.append(_reset_row(group, key.topic, str(key.partition), str(offset)))
    for row in rows:
        out.line(row)


def _reset_row(group: str, topic: str, partition: str, offset: str) -> str:
    return f"{group:<30} {topic:<30} {partition:<10} {offset:<15}".rstrip()


def new_offsets(admin: AdminClient, group: str, options: Options) -> dict[TopicPartition, int]:
    """Return the offset that --reset-offsets would commit, by partition."""
    from bridgehead.admin import EARLIEST, LATEST

    committed = {
        key: group_offset.offset for key, group_offset in admin.list_group_offsets(group).items()
    }
    if options.has("all-topics"):
        keys = sorted(committed)
    else:
        keys = _partitions(admin, options.texts("topic"))
    if not keys:
        return {}
    first = {
        k: offset.get().offset
        for k, offset in admin.list_offsets(dict.fromkeys(keys, EARLIEST)).items()
    }
    end = {
        k: offset.get().offset
        for k, offset in admin.list_offsets(dict.fromkeys(keys, LATEST)).items()
    }
    return {
        key: _new_offset(options, committed.get(key), first[key], end[key], key) for key in keys
    }


def _new_offset(
    options: Options, committed: int | None, first: int, end: int, key: TopicPartition
) -> int:
    if options.has("to-earliest"):
        return first
    if options.has("to-latest"):
        return end
    if options.has("to-current"):
        return end if committed is None else committed
    wanted = options.number("to-offset")
    if wanted is None:
        if committed is None:
            raise ToolError(
                f"Cannot shift offset for partition {key.topic}-{key.partition} "
                "since there is no current committed offset",
                terse=True,
            )
        wanted = committed + (options.number("shift-by") or 0)
    return min(max(wanted, first), end)


def _partitions(admin: AdminClient, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions that each --topic names: TOPIC, or TOPIC:0,1."""
    from bridgehead.admin import TopicPartition

    described = admin.describe_topics([topic for topic in topics if ":" not in topic])
    chosen: dict[str, set[int]] = {}
    for topic in topics:
        name, colon, numbers = topic.partition(":")
        indexes = map(int, numbers.split(",")) if colon else described[name].get().partitions
        chosen.setdefault(name, set()).update(indexes)
    return [TopicPartition(name, index) for name in chosen for index in sorted(chosen[name])]


def delete(admin: AdminClient, options: Options, out: Output) -> None:
    """Delete the committed offsets of topics from a group; show what happened to each partition."""
    (group,) = options.texts("group")
    keys = _partitions(admin, options.texts("topic"))
    errors = dict(sorted(admin.delete_group_offsets(group, keys).items()))
    out.result(
        partitions=[
            {**key._asdict(), "error": None if error is None else str(error)}
            for key, error in errors.items()
        ]
    )
    topics = ", ".join(options.texts("topic"))
    if all(error is None for error in errors.values()):
        out.line(f"Request succeed for deleting offsets with topic {topics} group {group}")
    else:
        out.line("\nError: Encounter some partition level error, see the follow-up details:")
    out.line("")
    out.line(f"{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}".rstrip())
    for key, error in errors.items():
        status = "Successful" if error is None else f"Error: {error}"
        out.line(f"{key.topic:<30} {key.partition:<15} {status}")
