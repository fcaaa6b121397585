"""`bridgehead reassign-partitions`: kafka-reassign-partitions.sh."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bridgehead.cli.tools.json_files import elements, field, parse_json, twice
from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    need,
    number,
    read_text,
    text,
)

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, Node, PartitionReassignment, TopicPartition

Assignment = Mapping["TopicPartition", Sequence[int]]

_ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list")
_NEEDED: Final = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_PERMITTED: Final = {
    "generate": ("disable-rack-aware",),
    "execute": ("additional", "throttle"),
    "verify": ("preserve-throttles",),
    "cancel": ("preserve-throttles",),
    "list": (),
}
_BROKER_THROTTLES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_TOPIC_THROTTLES: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's `validateAndParseArgs`."""
    actions = options.used(_ACTIONS)
    if len(actions) != 1:
        words = ", ".join(f"--{known_action}" for known_action in _ACTIONS)
        raise UsageFault(f"Command must include exactly one action: {words}")
    [action] = actions
    need(options, *_NEEDED[action])
    option_names = (known_option.name for known_option in TOOL.options)
    for option in options.used(tuple(option_names)):
        if option not in (action, *_NEEDED[action], *_PERMITTED[action]):
            raise UsageFault(f'Option "[{option}]" can\'t be used with action "[{action}]"')


def parse_reassignment(text: str) -> list[tuple[TopicPartition, list[int]]]:
    """Return the partitions in a JSON file, with their replicas. Raises ToolError."""
    from bridgehead.admin import TopicPartition

    document = parse_json(text)
    assignment = []
    for element in elements(document, "partitions") if "partitions" in document else ():
        partition = TopicPartition(field(element, "topic", str), field(element, "partition", int))
        replicas = field(element, "replicas", list)
        if not all(type(broker) is int for broker in replicas):
            raise ToolError(f'"replicas" is not a list of broker ids in {json.dumps(element)}')
        if "log_dirs" in element and any(
            path != "any" for path in field(element, "log_dirs", list)
        ):
            raise ToolError('Replicas cannot be moved to a directory: write "any" in "log_dirs".')
        assignment.append((partition, replicas))
    return assignment


def parse_execution(text: str) -> dict[TopicPartition, list[int]]:
    """Return the wanted assignment of --execute, after Kafka's checks. Raises ToolError."""
    pairs = parse_reassignment(text)
    if not pairs:
        raise ToolError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in pairs):
        raise ToolError("Partition replica list cannot be empty")
    partitions = twice(partition for partition, _ in pairs)
    if partitions:
        raise ToolError(
            "Partition reassignment contains duplicate topic partitions: "
            + ",".join(map(name, partitions))
        )
    doubled = [(partition, twice(replicas)) for partition, replicas in pairs]
    texts = [
        f"{name(partition)} contains multiple entries for {_ids(ids)}"
        for partition, ids in doubled
        if ids
    ]
    if texts:
        raise ToolError(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(texts)}"
        )
    return dict(pairs)


def name(partition: TopicPartition) -> str:
    """Return `topic-partition`."""
    return f"{partition.topic}-{partition.partition}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def as_json(assignment: Assignment) -> dict[str, Any]:
    """Return the document that --reassignment-json-file reads."""
    return {
        "version": 1,
        "partitions": [
            {**partition._asdict(), "replicas": list(replicas), "log_dirs": ["any"] * len(replicas)}
            for partition, replicas in sorted(assignment.items())
        ],
    }


def _compact(assignment: Assignment) -> str:
    return json.dumps(as_json(assignment), separators=(",", ":"))


def states(
    wanted: Iterable[tuple[TopicPartition, Sequence[int]]],
    current: Assignment,
    moving: Mapping[TopicPartition, PartitionReassignment],
) -> list[str]:
    """Return the lines of --verify about the partitions."""
    lines = ["Status of partition reassignment:"]
    for partition, replicas in sorted(wanted):
        now = list(current.get(partition, ()))
        if partition in moving:
            lines.append(f"Reassignment of partition {name(partition)} is still in progress.")
        elif now == list(replicas):
            lines.append(f"Reassignment of partition {name(partition)} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {name(partition)}, but replica set "
                f"is {_ids(now)} rather than {_ids(replicas)}."
            )
    return lines


def reassignment_lines(moving: Mapping[TopicPartition, PartitionReassignment]) -> list[str]:
    """Return the lines of --list."""
    if not moving:
        return ["No partition reassignments found."]
    lines = ["Current partition reassignments:"]
    for partition, reassignment in sorted(moving.items()):
        adding = (
            f" adding: {_ids(reassignment.adding_replicas)}."
            if reassignment.adding_replicas
            else ""
        )
        removing = (
            f" removing: {_ids(reassignment.removing_replicas)}."
            if reassignment.removing_replicas
            else ""
        )
        lines.append(
            f"{name(partition)}: replicas: {_ids(reassignment.replicas)}.{adding}{removing}"
        )
    return lines


def proposal(current: Assignment, brokers: Sequence[Node]) -> dict[TopicPartition, list[int]]:
    """Return an assignment that spreads the replicas over brokers and racks.

    Each partition gets as many replicas as the first partition of its topic has.

    Raises:
        ToolError: there are too few brokers.
    """
    ordered = _by_rack(brokers)
    proposed = {}
    first: dict[str, int] = {}
    for index, (partition, replicas) in enumerate(sorted(current.items())):
        count = first.setdefault(partition.topic, len(replicas))
        if count > len(ordered):
            raise ToolError(
                f"Replication factor: {count} larger than available brokers: {len(ordered)}."
            )
        start = index % len(ordered)
        turned = [*ordered[start:], *ordered[:start]]
        racks: list[object] = []
        new: list[Node] = []
        for broker in turned:  # first one broker of each rack
            if broker.rack is None or broker.rack not in racks:
                racks.append(broker.rack)
                new.append(broker)
        new += [broker for broker in turned if broker not in new]
        proposed[partition] = [node.id for node in new[:count]]
    return proposed


def _by_rack(brokers: Sequence[Node]) -> list[Node]:
    """Return the brokers in an order in which their racks alternate as long as possible."""
    positions: dict[object, int] = {}
    keyed = []
    for broker in sorted(brokers):
        position = positions.get(broker.rack, 0)
        positions[broker.rack] = position + 1
        keyed.append((position if broker.rack else 0, str(broker.rack or ""), broker.id, broker))
    return [broker for *_, broker in sorted(keyed)]


def moves(
    wanted: Assignment, current: Assignment, moving: Mapping[TopicPartition, PartitionReassignment]
) -> dict[TopicPartition, tuple[list[int], list[int]]]:
    """Return the source and destination brokers of each partition, for throttles."""
    result = {}
    for partition, reassignment in moving.items():
        sources = [
            broker for broker in reassignment.replicas if broker not in reassignment.adding_replicas
        ]
        result[partition] = (sources, list(reassignment.adding_replicas))
    for partition, replicas in wanted.items():
        sources = result[partition][0] if partition in result else list(current[partition])
        result[partition] = (sources, [replica for replica in replicas if replica not in sources])
    return result


def throttled_replicas(
    moving: Mapping[TopicPartition, tuple[list[int], list[int]]],
) -> dict[str, tuple[str, str]]:
    """Return the throttled leaders and followers of each topic."""
    topics: dict[str, tuple[set[str], set[str]]] = {}
    for partition, (sources, destinations) in moving.items():
        leaders, followers = topics.setdefault(partition.topic, (set(), set()))
        leaders.update(f"{partition.partition}:{source}" for source in sources)
        followers.update(f"{partition.partition}:{destination}" for destination in destinations)
    return {
        topic: (",".join(sorted(leaders)), ",".join(sorted(followers)))
        for topic, (leaders, followers) in topics.items()
    }


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    [action] = options.used(_ACTIONS)
    {
        "generate": _generate,
        "execute": _execute,
        "verify": _verify,
        "cancel": _cancel,
        "list": _list,
    }[action](admin, options, out)


def _list(admin: AdminClient, options: Options, out: Output) -> None:
    moving = admin.list_partition_reassignments()
    for line in reassignment_lines(moving):
        out.line(line)
    out.result(
        reassignments=[
            {**reassignment._asdict(), **moving[reassignment]._asdict()}
            for reassignment in sorted(moving)
        ]
    )


def _current(
    admin: AdminClient, topics: Iterable[str], *, omit_unknown: bool = False
) -> dict[TopicPartition, list[int]]:
    """Return the replicas of every partition of the topics.

    Raises:
        KafkaError: a topic cannot be described; with `omit_unknown`, unknown topics are omitted.
    """
    from bridgehead.admin import ErrorCode, KafkaError, TopicPartition

    replicas_of = {}
    for topic, result in admin.describe_topics(sorted(set(topics))).items():
        error = result.error
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if isinstance(error, KafkaError) and error.code == unknown:
            if omit_unknown:
                continue
            raise KafkaError(unknown, f"Topic {topic} not found.")
        for index, partition in result.get().partitions.items():
            replicas = [node.id for node in partition.get().replicas]
            replicas_of[TopicPartition(topic, index)] = replicas
    return replicas_of


def _generate(admin: AdminClient, options: Options, out: Output) -> None:
    document = parse_json(read_text(options.needed("topics-to-move-json-file")))
    listed = elements(document, "topics") if "topics" in document else ()
    topics = [field(element, "topic", str) for element in listed]
    brokers = _broker_list(options.needed("broker-list"))
    if twice(topics):
        raise ToolError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice(topics))}]"
        )
    current = _current(admin, topics)
    nodes = [node for node in admin.describe_cluster().nodes if node.id in brokers]
    if options.has("disable-rack-aware"):
        nodes = [node._replace(rack=None) for node in nodes]
    elif len({node.rack is None for node in nodes}) == 2:
        raise ToolError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    proposed = proposal(current, nodes)
    out.line(f"Current partition replica assignment\n{_compact(current)}\n")
    out.line(f"Proposed partition reassignment configuration\n{_compact(proposed)}")
    out.result(current=as_json(current), proposed=as_json(proposed))


def _broker_list(text: str) -> list[int]:
    try:
        brokers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ToolError(f"{text!r} is not a list of broker ids: write 1,2.") from None
    if twice(brokers):
        raise ToolError(
            f"Broker list contains duplicate entries: [{', '.join(map(str, twice(brokers)))}]"
        )
    return brokers


def _execute(admin: AdminClient, options: Options, out: Output) -> None:
    wanted = parse_execution(read_text(options.needed("reassignment-json-file")))
    moving = admin.list_partition_reassignments()
    if moving and not options.has("additional"):
        raise ToolError(_EXISTING, terse=True)
    live = {node.id for node in admin.describe_cluster().nodes}
    unknown = sorted({replica for replicas in wanted.values() for replica in replicas} - live)
    if unknown:
        raise ToolError(f"Unknown broker id {unknown[0]}")
    every = _current(admin, (partition.topic for partition in wanted))
    _require_partitions(wanted, every)
    current = {partition: every[partition] for partition in wanted}
    out.line(f"Current partition replica assignment\n\n{_compact(current)}\n")
    out.line("Save this to use as the --reassignment-json-file option during rollback")
    out.result(current=as_json(current))
    throttle = options.number("throttle")
    if throttle is not None and throttle >= 0:
        out.line(_VERIFY)
        _set_throttles(admin, moves(wanted, current, moving), throttle)
        out.line(f"The inter-broker throttle limit was set to {throttle} B/s")
    errors = admin.alter_partition_reassignments(wanted)
    failed = {partition: error for partition, error in sorted(errors.items()) if error is not None}
    if failed:
        lines = "\n".join(f"{name(partition)}: {error}" for partition, error in failed.items())
        raise ToolError(f"Error reassigning partition(s):\n{lines}", terse=True)
    names = ",".join(map(name, sorted(wanted)))
    out.line(f"Successfully started partition reassignment{_plural(len(wanted))} for {names}")
    out.result(started=[partition._asdict() for partition in sorted(wanted)])


def _require_partitions(wanted: Assignment, every: Assignment) -> None:
    from bridgehead.admin import ErrorCode, KafkaError

    missing = sorted(partition for partition in wanted if partition not in every)
    if missing:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition: {', '.join(map(name, missing))}",
        )


def _set_throttles(
    admin: AdminClient,
    moving: Mapping[TopicPartition, tuple[list[int], list[int]]],
    throttle: int,
) -> None:
    brokers = {node for sides in moving.values() for side in sides for node in side}
    values: dict[tuple[str, str], dict[str, str]] = {
        ("TOPIC", topic): dict(zip(_TOPIC_THROTTLES, replicas, strict=True))
        for topic, replicas in throttled_replicas(moving).items()
    }
    for broker in brokers:
        values["BROKER", str(broker)] = dict.fromkeys(_BROKER_THROTTLES[:2], str(throttle))
    _alter(admin, values)


def _alter(admin: AdminClient, values: Mapping[tuple[str, str], Mapping[str, str | None]]) -> None:
    """Set configs of topics and brokers; a value of None deletes a config."""
    from bridgehead.admin import (
        AlterConfigOp,
        AlterConfigOpType,
        ConfigResource,
        ConfigResourceType,
    )

    changes = {
        ConfigResource(ConfigResourceType[kind], named): [
            AlterConfigOp(
                key, value, AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            )
            for key, value in configs.items()
        ]
        for (kind, named), configs in values.items()
    }
    for error in filter(None, admin.incremental_alter_configs(changes).values()):
        raise error


def _clear_throttles(
    admin: AdminClient, wanted: Iterable[tuple[TopicPartition, Sequence[int]]], out: Output
) -> None:
    brokers = {node.id for node in admin.describe_cluster().nodes}
    topics: dict[str, None] = {}
    for partition, replicas in wanted:
        brokers.update(replicas)
        topics[partition.topic] = None
    out.line(
        f"Clearing broker-level throttles on broker{_plural(len(brokers))} {_ids(sorted(brokers))}"
    )
    _alter(
        admin,
        {("BROKER", str(broker)): dict.fromkeys(_BROKER_THROTTLES) for broker in sorted(brokers)},
    )
    out.line(f"Clearing topic-level throttles on topic{_plural(len(topics))} {','.join(topics)}")
    _alter(admin, {("TOPIC", topic): dict.fromkeys(_TOPIC_THROTTLES) for topic in topics})


def _verify(admin: AdminClient, options: Options, out: Output) -> None:
    wanted = parse_reassignment(read_text(options.needed("reassignment-json-file")))
    moving = admin.list_partition_reassignments()
    current = _current(admin, (partition.topic for partition, _ in wanted), omit_unknown=True)
    lines = states(wanted, current, moving)
    for line in [*lines, ""]:
        out.line(line)
    out.result(partitions=lines[1:], in_progress=bool(moving))
    if not moving and not options.has("preserve-throttles"):
        _clear_throttles(admin, wanted, out)


def _cancel(admin: AdminClient, options: Options, out: Output) -> None:
    wanted = parse_reassignment(read_text(options.needed("reassignment-json-file")))
    moving = sorted(admin.list_partition_reassignments([partition for partition, _ in wanted]))
    errors = admin.alter_partition_reassignments(dict.fromkeys(moving)) if moving else {}
    failed = {partition: error for partition, error in sorted(errors.items()) if error is not None}
    if failed:
        texts = "\n".join(f"{name(partition)}: {error}" for partition, error in failed.items())
        raise ToolError(
            f"Error cancelling partition reassignment{_plural(len(failed))} for:\n{texts}",
            terse=True,
        )
    out.result(cancelled=[reassignment._asdict() for reassignment in moving])
    if moving:
        names = ",".join(map(name, moving))
        out.line(
            f"Successfully cancelled partition reassignment{_plural(len(moving))} for: {names}"
        )
    else:
        out.line("None of the specified partition reassignments are active.")
    out.line("None of the specified partition moves are active.")
    if not options.has("preserve-throttles"):
        _clear_throttles(admin, wanted, out)


TOOL: Final = Tool(
    name="reassign-partitions",
    help="Move partitions between brokers.\n\nWorks like kafka-reassign-partitions.sh.",
    options=(
        Option("generate", "Propose an assignment, and change nothing."),
        Option("execute", "Start a reassignment."),
        Option("verify", "Show the state of a reassignment; remove the throttles if none runs."),
        Option("cancel", "Cancel a reassignment."),
        Option("list", "List the reassignments in progress."),
        text("reassignment-json-file", "FILE", "The reassignment, as --generate prints it."),
        text(
            "topics-to-move-json-file",
            "FILE",
            'With --generate: topics, as {"topics":[{"topic":"a"}]}.',
        ),
        text("broker-list", "ID,...", "With --generate: the brokers to use."),
        number("throttle", "BYTES", "With --execute: set a throttle, in bytes per second."),
        Option("additional", "With --execute: add to the reassignments in progress."),
        Option("preserve-throttles", "With --verify or --cancel: keep the throttles."),
        Option("disable-rack-aware", "With --generate: ignore racks."),
    ),
    run=_run,
    check=check,
    failure="Error: {java}",
    failure_on_stdout=True,
    defaults={"client.id": "reassign-partitions-tool"},
)
