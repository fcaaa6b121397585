"""`bridgehead topics`: kafka-topics.sh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    forbid,
    need,
    number,
    text,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import (
        AdminClient,
        ConfigEntry,
        NewTopic,
        PartitionReassignment,
        TopicInfo,
        TopicPartition,
        TopicPartitionInfo,
    )

_ACTIONS: Final = ("alter", "create", "describe", "list", "delete")
_REPORTS: Final = (
    *("under-replicated-partitions", "under-min-isr-partitions"),
    *("at-min-isr-partitions", "unavailable-partitions"),
)
_INTERNAL: Final = ("__consumer_offsets", "__transaction_state")
_ALTER_CONFIGS_HINT: Final = (
    " (the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)"
)
_COLLISION: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
_REPLICATION_FACTOR_MAX: Final = 32_767
_NO_TOPIC_ID: Final = "A" * 22


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's TopicCommandOptions."""
    if len(options.used(_ACTIONS)) != 1:
        raise UsageFault(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    named = options.used(("topic", "topic-id"))
    if options.has("describe") and options.has("if-exists") and not named:
        raise UsageFault("--topic or --topic-id is required to describe a topic")
    if not options.has("list") and not options.has("describe"):
        need(options, "topic")
    if options.has("alter"):
        if options.has("config"):
            raise UsageFault(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                f'"[alter]"{_ALTER_CONFIGS_HINT}'
            )
        need(options, "partitions")
    for option, actions in (
        ("config", ("alter", "create")),
        ("partitions", ("alter", "create")),
        ("replication-factor", ("create",)),
        ("replica-assignment", ("alter", "create")),
        ("if-exists", ("alter", "delete", "describe")),
        ("if-not-exists", ("create",)),
        ("exclude-internal", ("list", "describe")),
        ("topics-with-overrides", ("describe",)),
        *((report, ("describe",)) for report in _REPORTS),
    ):
        forbid(
            options,
            option,
            *(known_action for known_action in _ACTIONS if known_action not in actions),
        )
    if options.has("create"):
        forbid(options, "replica-assignment", "partitions", "replication-factor")
    for report in _REPORTS:
        others = (candidate for candidate in _REPORTS if candidate != report)
        forbid(options, report, *others, "topics-with-overrides")


def parse_assignment(text: str) -> dict[int, list[int]]:
    """Parse `1:2,2:3`: the broker ids of partition 0, of partition 1, and so on.

    Raises:
        ToolError: the text is malformed, names a broker twice for a partition, or gives partitions
            different replication factors.
    """
    assignment: dict[int, list[int]] = {}
    for partition, ids in enumerate(text.split(",")):
        try:
            brokers = [int(id_) for id_ in ids.split(":")]
        except ValueError:
            raise ToolError(f"{ids!r} is not a list of broker ids: write 1:2,2:3.") from None
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            raise ToolError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        assignment[partition] = brokers
        if len(brokers) != len(assignment[0]):
            raise ToolError(f"Partition {partition} has different replication factor: {brokers}")
    return assignment


def parse_configs(pairs: Iterable[str]) -> dict[str, str | None]:
    """Parse `key=value` of each --config. Raises ToolError."""
    configs: dict[str, str | None] = {}
    for pair in pairs:
        parts = re.split(r"\s*=\s*", pair.rstrip("="))
        if len(parts) != 2:
            raise ToolError(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        configs[parts[0].strip()] = parts[1].strip()
    return configs


def parse_new_topic(options: Options) -> NewTopic:
    """Return the topic of --create. Raises ToolError."""
    from bridgehead.admin import NewTopicWithReplicaAssignments, NewTopicWithReplication

    name = options.needed("topic")
    assignment = options.text("replica-assignment")
    parsed = parse_assignment(assignment) if assignment else None
    configs = parse_configs(options.texts("config"))
    factor, partitions = options.number("replication-factor"), options.number("partitions")
    if factor is not None and not 1 <= factor <= _REPLICATION_FACTOR_MAX:
        raise ToolError(
            f"The replication factor must be between 1 and {_REPLICATION_FACTOR_MAX} inclusive"
        )
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    if parsed is not None:
        return NewTopicWithReplicaAssignments(name, parsed, configs)
    return NewTopicWithReplication(
        name, -1 if partitions is None else partitions, -1 if factor is None else factor, configs
    )


def matching(names: Iterable[str], pattern: str | None, *, exclude_internal: bool) -> list[str]:
    """Return the sorted names that match `pattern`: regular expressions, separated by commas.

    Raises:
        ToolError: `pattern` is not a regular expression.
    """
    matching_names = sorted(name for name in names if not (exclude_internal and name in _INTERNAL))
    if pattern is None:
        return matching_names
    expression = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        allowed = re.compile(expression)
    except re.error as error:
        raise ToolError(f"{pattern!r} is not a regular expression ({error}).") from None
    return [candidate for candidate in matching_names if allowed.fullmatch(candidate)]


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    [action] = options.used(_ACTIONS)
    {
        "create": _create,
        "alter": _alter,
        "list": _list,
        "describe": _describe,
        "delete": _delete,
    }[action](admin, options, out)


def _create(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import ErrorCode, KafkaError

    topic = parse_new_topic(options)
    if "." in topic.name or "_" in topic.name:
        out.line(_COLLISION)
    error = admin.create_topics([topic], retry_on_quota_violation=False)[topic.name]
    exists = isinstance(error, KafkaError) and error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    out.result(topic=topic.name, created=error is None)
    if error is None:
        out.line(f"Created topic {topic.name}.")
    elif not (exists and options.has("if-not-exists")):
        raise error


def _names(admin: AdminClient, options: Options) -> list[str]:
    from bridgehead.admin import ListTopicsFlags

    every = admin.list_topics(ListTopicsFlags.INCLUDE_INTERNAL | ListTopicsFlags.INCLUDE_EXTERNAL)
    return matching(every, options.text("topic"), exclude_internal=options.has("exclude-internal"))


def _existing(admin: AdminClient, options: Options) -> list[str]:
    """Return the names that --topic matches.

    Raises:
        ToolError: no topic matches, and --if-exists is not given.
    """
    names = _names(admin, options)
    topic = options.text("topic")
    if topic and not names and not options.has("if-exists"):
        raise ToolError(f"Topic '{topic}' does not exist as expected")
    return names


def _list(admin: AdminClient, options: Options, out: Output) -> None:
    names = _names(admin, options)
    out.result(topics=names)
    out.line("\n".join(names))


def _delete(admin: AdminClient, options: Options, out: Output) -> None:
    names = _existing(admin, options)
    errors = admin.delete_topics(names, retry_on_quota_violation=False) if names else {}
    out.result(
        topics={name: None if error is None else str(error) for name, error in errors.items()}
    )
    for error in filter(None, errors.values()):
        raise error


def _alter(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import NewPartitions

    assignment = options.text("replica-assignment")
    parsed = parse_assignment(assignment) if assignment else None
    names = _existing(admin, options)
    count = options.number("partitions") or 0
    wanted = {}
    for name, topic in (admin.describe_topics(names) if names else {}).items():
        first = len(topic.get().partitions)
        wanted[name] = NewPartitions(count, None if parsed is None else _added(parsed, first))
    errors = admin.create_partitions(wanted, retry_on_quota_violation=False) if wanted else {}
    out.result(
        topics={name: None if error is None else str(error) for name, error in errors.items()}
    )
    for error in filter(None, errors.values()):
        raise error


def _added(assignment: Mapping[int, Sequence[int]], first: int) -> list[Sequence[int]]:
    return [brokers for partition, brokers in assignment.items() if partition >= first]


def _describe(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import ConfigResource, ConfigResourceType, TopicPartition

    topics = _described(admin, options, out)
    resources = {
        ConfigResource(ConfigResourceType.TOPIC, described_topic.name): described_topic
        for described_topic in topics
    }
    configs = admin.describe_configs(list(resources)) if resources else {}
    moving = _reassignments(
        admin,
        [
            TopicPartition(described_topic.name, partition)
            for described_topic in topics
            for partition in described_topic.partitions
        ],
    )
    live = {node.id for node in admin.describe_cluster().nodes}
    out.result(topics=[])
    for resource, topic in resources.items():
        entries = configs[resource].get()
        for line in description(topic, entries, moving, live, options):
            out.line(line)
        out.document["topics"].append(_as_json(topic, entries))


def _described(admin: AdminClient, options: Options, out: Output) -> list[TopicInfo]:
    topic_id = options.text("topic-id")
    if topic_id is None or topic_id == _NO_TOPIC_ID:
        names = _existing(admin, options)
        described = admin.describe_topics(names) if names else {}
        return [result.get() for _, result in sorted(described.items())]
    if options.has("topic") and options.has("if-exists"):
        out.line(
            "Only topic id will be used when both --topic and --topic-id are specified and topicId "
            "is not Uuid.ZERO_UUID"
        )
    topics = [topic.get() for topic in admin.describe_topics(_names_of_all(admin)).values()]
    chosen = [topic for topic in topics if topic.topic_id == topic_id]
    if not chosen and not options.has("if-exists"):
        raise ToolError(f"TopicId '{topic_id}' does not exist as expected")
    return chosen


def _names_of_all(admin: AdminClient) -> list[str]:
    return _names(admin, Options({}))


def _reassignments(
    admin: AdminClient, partitions: list[TopicPartition]
) -> Mapping[TopicPartition, PartitionReassignment]:
    """Return the reassignments. As in Kafka's tool, {} if the client may not list them."""
    from bridgehead.admin import ErrorCode, KafkaError

    try:
        return admin.list_partition_reassignments(partitions) if partitions else {}
    except KafkaError as error:
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}


def description(
    topic: TopicInfo,
    configs: Mapping[str, ConfigEntry],
    moving: Mapping[TopicPartition, PartitionReassignment],
    live: set[int],
    options: Options,
) -> Iterator[str]:
    """Yield the lines of one topic: its own line, then a line per partition."""
    from bridgehead.admin import TopicPartition

    partitions = [partition.get() for _, partition in sorted(topic.partitions.items())]
    overridden = [
        f"{entry.name}={entry.value}" for entry in configs.values() if not _is_default(entry)
    ]
    reports = options.used(_REPORTS)
    only_overridden = options.has("topics-with-overrides")
    if not reports and (overridden or not only_overridden):
        first = moving.get(TopicPartition(topic.name, partitions[0].partition))
        yield "\t".join(
            [
                f"Topic: {topic.name}",
                *([f"TopicId: {topic.topic_id}"] if topic.topic_id else []),
                f"PartitionCount: {len(partitions)}",
                f"ReplicationFactor: {replication_factor(partitions[0], first)}",
                f"Configs: {','.join(overridden)}",
            ]
        )
    if only_overridden:
        return
    least = int(configs["min.insync.replicas"].value or 1)
    for partition in partitions:
        reassignment = moving.get(TopicPartition(topic.name, partition.partition))
        if not reports or _reported(reports[0], partition, reassignment, least, live):
            yield partition_line(topic.name, partition, reassignment)


def _is_default(entry: ConfigEntry) -> bool:
    from bridgehead.admin import ConfigSource

    return entry.source == ConfigSource.DEFAULT_CONFIG


def _is_moving(partition: TopicPartitionInfo, reassignment: PartitionReassignment | None) -> bool:
    if reassignment is None:
        return False
    changing = {*reassignment.adding_replicas, *reassignment.removing_replicas}
    return any(node.id in changing for node in partition.replicas)


def replication_factor(
    partition: TopicPartitionInfo, reassignment: PartitionReassignment | None
) -> int:
    """Return the number of replicas, without those that a reassignment adds."""
    if reassignment is not None and _is_moving(partition, reassignment):
        return len(reassignment.replicas) - len(reassignment.adding_replicas)
    return len(partition.replicas)


def _reported(
    report: str,
    partition: TopicPartitionInfo,
    reassignment: PartitionReassignment | None,
    least: int,
    live: set[int],
) -> bool:
    leader, in_sync = partition.leader, len(partition.isr)
    match report:
        case "under-replicated-partitions":
            return replication_factor(partition, reassignment) > in_sync
        case "under-min-isr-partitions":
            return leader is None or in_sync < least
        case "at-min-isr-partitions":
            return in_sync == least
        case _:
            return leader is None or leader.id not in live


def partition_line(
    topic: str, partition: TopicPartitionInfo, reassignment: PartitionReassignment | None
) -> str:
    """Return the line of one partition."""

    def ids(nodes: Iterable[int]) -> str:
        return ",".join(map(str, nodes))

    moves = []
    if reassignment is not None:
        moves = [
            f"Adding Replicas: {ids(reassignment.adding_replicas)}",
            f"Removing Replicas: {ids(reassignment.removing_replicas)}",
        ]
    return "\t".join(
        [
            f"\tTopic: {topic}",
            f"Partition: {partition.partition}",
            f"Leader: {'none' if partition.leader is None else partition.leader.id}",
            f"Replicas: {ids(node.id for node in partition.replicas)}",
            f"Isr: {ids(node.id for node in partition.isr)}",
            *moves,
            "Elr: N/A",
            "LastKnownElr: N/A",
        ]
    )


def _as_json(topic: TopicInfo, configs: Mapping[str, ConfigEntry]) -> dict[str, object]:
    partitions = [partition.get() for _, partition in sorted(topic.partitions.items())]
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "configs": {
            entry.name: entry.value for entry in configs.values() if not _is_default(entry)
        },
        "partitions": [
            {
                "partition": partition.partition,
                "leader": None if partition.leader is None else partition.leader.id,
                "replicas": [node.id for node in partition.replicas],
                "isr": [node.id for node in partition.isr],
            }
            for partition in partitions
        ],
    }


TOOL: Final = Tool(
    name="topics",
    help="Create, list, describe, alter and delete topics.\n\nWorks like kafka-topics.sh.",
    options=(
        Option("list", "List the topics."),
        Option("describe", "Describe topics and their partitions."),
        Option("create", "Create a topic."),
        Option("alter", "Add partitions."),
        Option("delete", "Delete topics."),
        text("topic", "TOPIC", "The topic; a regular expression, except with --create."),
        text("topic-id", "ID", "The id of the topic to describe."),
        number("partitions", "N", "The number of partitions."),
        number("replication-factor", "N", "The number of replicas of each partition."),
        text("replica-assignment", "1:2,2:3", "The broker ids of each partition."),
        texts("config", "KEY=VALUE", "A config of the new topic; may be repeated."),
        Option("if-exists", "Do nothing, and succeed, if there is no such topic."),
        Option("if-not-exists", "With --create: do nothing, and succeed, if the topic exists."),
        Option("exclude-internal", "Omit internal topics."),
        Option("topics-with-overrides", "Show only topics that override configs."),
        Option("under-replicated-partitions", "Show only partitions with out-of-sync replicas."),
        Option("unavailable-partitions", "Show only partitions without a live leader."),
        Option(
            "under-min-isr-partitions",
            "Show only partitions whose ISR is below min.insync.replicas.",
        ),
        Option(
            "at-min-isr-partitions", "Show only partitions whose ISR equals min.insync.replicas."
        ),
    ),
    run=_run,
    check=check,
    failure="Error while executing topic command : {error}",
    failure_on_stdout=True,
)
