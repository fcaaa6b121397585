"""`bridgehead groups`: kafka-consumer-groups.sh. `group_offsets` has the code for offsets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools import group_offsets
from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    UsageFault,
    forbid,
    optional,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, GroupDescription, GroupMember, GroupOverview, Node

_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_STATES: Final = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"),
    *("Assigning", "Reconciling"),
)
_TYPES: Final = ("Classic", "Consumer")
_REBALANCING: Final = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
_WIDTH: Final = 15  # the least width of a column


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's ConsumerGroupCommandOptions."""
    actions = options.used(_ACTIONS)
    for action in ("describe", "delete"):
        if options.has(action) and not options.used(("group", "all-groups")):
            raise UsageFault(f"Option [{action}] takes one of these options: [all-groups], [group]")
    if len(actions) != 1:
        raise UsageFault(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    group_offsets.check(options)
    forbid(options, "group", "all-groups", "list")
    if options.has("describe") and options.has("state") and options.has("members"):
        raise UsageFault(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    for option, valid in (("state", _STATES), ("type", _TYPES)):
        text = options.text(option)
        if text and set(_split(text)) - {choice.lower() for choice in valid}:
            raise UsageFault(
                f"Invalid {option} list '{text}'. Valid {option}s are: {', '.join(valid)}"
            )


def _split(text: str | None) -> list[str]:
    return [part.strip().lower() for part in (text or "").split(",") if part.strip()]


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    [action] = options.used(_ACTIONS)
    actions = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "reset-offsets": group_offsets.reset,
        "delete-offsets": group_offsets.delete,
    }
    actions[action](admin, options, out)


def _overviews(admin: AdminClient) -> list[GroupOverview]:
    """Return the consumer groups of every broker. If a broker has an error, raise it."""
    overviews = [group for result in admin.get_all_groups().values() for group in result.get()]
    consumers = (
        listed_group for listed_group in overviews if listed_group.protocol_type in ("consumer", "")
    )
    return sorted(consumers, key=lambda consumer: consumer.group_id)


def group_table(groups: Sequence[GroupOverview], *, types: bool, states: bool) -> list[str]:
    """Return the lines of --list --state and --list --type."""
    width = max((len(group.group_id) for group in groups), default=0)
    width = max(width, _WIDTH) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [
        (group.group_id, group.group_type.capitalize() or "Unknown", group.state)
        for group in groups
    ]
    chosen = [index for index, wanted in ((1, types), (2, states)) if wanted]
    return [
        " ".join([row[0].ljust(width), *(row[index].ljust(20) for index in chosen)]) for row in rows
    ]


def _list(admin: AdminClient, options: Options, out: Output) -> None:
    types, states = options.has("type"), options.has("state")
    groups = [
        overview
        for overview in _overviews(admin)
        if overview.state.lower() in (_split(options.text("state")) or [overview.state.lower()])
        and overview.group_type.lower()
        in (_split(options.text("type")) or [overview.group_type.lower()])
    ]
    out.result(groups=[group._asdict() for group in groups])
    if types or states:
        for line in group_table(groups, types=types, states=states):
            out.line(line)
        return
    for group in groups:
        out.line(group.group_id)


def state_message(group: str, state: str) -> tuple[str, bool] | None:
    """Return the message about a group's state, and whether it goes to standard output."""
    if state == "Dead":
        return f"\nError: Consumer group '{group}' does not exist.", True
    if state == "Empty":
        return f"\nConsumer group '{group}' has no active members.", False
    if state in _REBALANCING:
        return f"\nWarning: Consumer group '{group}' is rebalancing.", False
    return None


def partition_count(assignment: bytes) -> int:
    """Return the number of partitions in a member's assignment (Kafka's ConsumerProtocol).

    Return 0 for an assignment in the format of another protocol.
    """
    try:
        _, topics = struct.unpack_from(">hi", assignment, 0)
        at, count = 6, 0
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", assignment, at)
            (partitions,) = struct.unpack_from(">i", assignment, at + 2 + length)
            count += partitions
            at += 6 + length + 4 * partitions
    except struct.error:
        return 0
    return count


def _table(rows: Iterable[Sequence[str]], least: Sequence[int]) -> list[str]:
    """Return the rows as text. `least` has the least width of each column."""
    every = list(rows)
    columns = zip(*every, strict=True)
    widths = [max(width, *map(len, column)) for width, column in zip(least, columns, strict=True)]
    return [
        "".join(f"{cell.ljust(width)} " for cell, width in zip(row, widths, strict=True))
        for row in every
    ]


def member_lines(group: str, members: Sequence[GroupMember]) -> list[str]:
    """Return the table of --describe --members."""
    static = any(member.group_instance_id for member in members)
    rows = [("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS")]
    for member in sorted(members, key=lambda member: member.member_id):
        count = str(partition_count(member.assignment))
        instance = member.group_instance_id or ""
        rows.append(
            (group, member.member_id, instance, member.client_host, member.client_id, count)
        )
    least = [15, 15, 17, 15, 15, 15]
    if static:
        return _table(rows, least)
    return _table((row[:2] + row[3:] for row in rows), least[:2] + least[3:])


def state_lines(group: GroupDescription, coordinator: Node) -> list[str]:
    """Return the table of --describe --state."""
    address = f"{coordinator.host}:{coordinator.port}  ({coordinator.id})"
    width = max(25, len(address))
    rows = [
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
        (group.group_id, address, group.protocol_data, group.state, str(len(group.members))),
    ]
    return [
        " ".join(
            [row[0].ljust(width), row[1].ljust(25), row[2].ljust(20), row[3].ljust(15), row[4]]
        )
        for row in rows
    ]


def _describe(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import Node

    groups = options.texts("group")
    if options.has("all-groups"):
        groups = [overview.group_id for overview in _overviews(admin)]
    nodes = {node.id: node for node in admin.describe_cluster().nodes} if groups else {}
    out.result(groups=[])
    for name, result in sorted(admin.describe_groups(groups).items()):
        group = result.get()
        out.document["groups"].append(
            {
                "group_id": name,
                "state": group.state,
                "coordinator": group.coordinator,
                "members": [
                    {
                        "member_id": group_member.member_id,
                        "client_id": group_member.client_id,
                        "host": group_member.client_host,
                        "partitions": partition_count(group_member.assignment),
                    }
                    for group_member in group.members
                ],
            }
        )
        # A coordinator that started after the brokers were listed is not in `nodes`.
        coordinator = nodes.get(group.coordinator, Node(group.coordinator, "", -1))
        _show(admin, group, coordinator, options, out)


def _show(
    admin: AdminClient,
    group: GroupDescription,
    coordinator: Node,
    options: Options,
    out: Output,
) -> None:
    message = state_message(group.group_id, group.state)
    if message is not None:
        sentence, on_stdout = message
        (out.line if on_stdout else out.note)(sentence)
    if options.has("members"):
        for line in ["", *member_lines(group.group_id, group.members)]:
            out.line(line)
    elif group.state == "Dead":
        return
    elif options.has("state"):
        for line in ["", *state_lines(group, coordinator)]:
            out.line(line)
    else:
        rows = group_offsets.positions(admin, group)
        out.document["groups"][-1]["offsets"] = [row._asdict() for row in rows]
        for line in group_offsets.position_lines(group.group_id, rows):
            out.line(line)


def _delete(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.cli.tools.connection import java_text

    groups = options.texts("group")
    if options.has("all-groups"):
        groups = [overview.group_id for overview in _overviews(admin)]
    errors = admin.delete_groups(groups)
    failed = {name: error for name, error in errors.items() if error is not None}
    deleted = [name for name in errors if name not in failed]
    out.result(
        groups={name: None if error is None else str(error) for name, error in errors.items()}
    )
    if not failed:
        out.line(f"Deletion of requested consumer groups ('{', '.join(deleted)}') was successful.")
        return
    out.line("\nError: Deletion of some consumer groups failed:")
    for name, error in failed.items():
        out.line(f"* Group '{name}' could not be deleted due to: {java_text(error)}")
    if deleted:
        out.line(f"\nThese consumer groups were deleted successfully: '{', '.join(deleted)}'")


TOOL: Final = Tool(
    name="groups",
    help="Show and change groups and committed offsets.\n\nWorks like kafka-consumer-groups.sh.",
    options=(
        Option("list", "List the groups."),
        Option(
            "describe", "Describe groups. --offsets, --members and --state select what is shown."
        ),
        Option("delete", "Delete groups without members."),
        *group_offsets.OPTIONS,
        texts("group", "GROUP", "A group; may be repeated."),
        Option("all-groups", "Every group."),
        optional(
            "state",
            "[STATE,...]",
            "With --describe: show the state. With --list: show the states, or list only groups in "
            "these states.",
        ),
        optional(
            "type", "[TYPE,...]", "With --list: show the types, or list only groups of these types."
        ),
        Option("members", "With --describe: show the members."),
        Option("offsets", "With --describe: show offsets and lag (the default)."),
    ),
    run=_run,
    check=check,
    failure="\nError: Executing consumer group command failed due to {java}",
    failure_on_stdout=True,
)
