"""Translates records into znode operations. Pure; the only code that maps records to znodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import assert_never

from cluster_model.acls.znodes import AclChangeZnode, AclZnode
from cluster_model.configs.steps import StepKind, config_steps
from cluster_model.image import MetadataImage, Topic
from cluster_model.records import (
    AclRecord,
    AssignmentRecord,
    ConfigRecord,
    ConfigResource,
    DeletionMarkerRecord,
    DeletionMarkerRemovalRecord,
    PartitionRecord,
    ProducerIdBlockRecord,
    Record,
    TokenRecord,
    TokenRemovalRecord,
    TopicIdRecord,
    TopicRecord,
    TopicRemovalRecord,
    topic_of,
)
from cluster_model.znodes.layout import (
    ConfigChangeZnode,
    ConfigZnode,
    DeletionMarkerZnode,
    PartitionZnode,
    ProducerIdBlockZnode,
    TopicZnode,
)
from cluster_model.znodes.operations import ANY_VERSION, Create, Delete, Operation, SetData
from cluster_model.znodes.tokens import TokenChangeZnode, TokenZnode


def plan_operations(records: Iterable[Record], image: MetadataImage) -> list[Operation]:
    """Return the operations that write `records` to a cluster in the state of `image`.

    The store adds the fence and the commit counter.
    """
    operations: list[Operation] = []
    # Topics whose `partitions` znode these operations create.
    rooted: set[str] = set()
    for record in records:
        match record:
            case TopicRecord(name, topic_id, assignment, configs):
                operations += _write_config(ConfigRecord(_topic(name), configs, False), image)
                content = TopicZnode.encode(assignment, topic_id, {}, {})
                operations.append(Create(TopicZnode.path(name), content))
            case PartitionRecord():
                operations += _write_partition(record, image.topics.get(record.topic), rooted)
            case AssignmentRecord(name, assignment, adding, removing):
                content = TopicZnode.encode(
                    assignment, image.topics[name].topic_id, adding, removing
                )
                operations.append(SetData(TopicZnode.path(name), content))
            case TopicIdRecord(name, topic_id):
                topic = image.topics[name]
                content = TopicZnode.encode(
                    topic.assignment, topic_id, topic.adding, topic.removing
                )
                operations.append(SetData(TopicZnode.path(name), content))
            case ConfigRecord():
                operations += _write_config(record, image)
            case DeletionMarkerRecord(name):
                operations.append(Create(DeletionMarkerZnode.path(name)))
            case DeletionMarkerRemovalRecord(name):
                operations.append(Delete(DeletionMarkerZnode.path(name)))
            case TopicRemovalRecord(name):
                operations += _remove_topic(image.topics[name], image)
            case TokenRecord(token):
                path, content = TokenZnode.path(token.token_id), TokenZnode.encode(token)
                is_new = token.token_id not in image.tokens
                operations.append(Create(path, content) if is_new else SetData(path, content))
                operations.append(_token_change(token.token_id))
            case TokenRemovalRecord(token_id):
                operations.append(Delete(TokenZnode.path(token_id)))
                operations.append(_token_change(token_id))
            case ProducerIdBlockRecord(broker_id, first_id):
                assert image.producer_ids is not None
                content = ProducerIdBlockZnode.encode(broker_id, first_id)
                version = image.producer_ids.version
                operations.append(SetData(ProducerIdBlockZnode.path, content, version))
            case AclRecord():
                operations += _write_acls(record, image)
            case _:
                assert_never(record)
    return operations


def plan_multis(
    records: Iterable[Record], image: MetadataImage, operations_max: int
) -> Iterator[list[Operation]]:
    """Yield the operations that write `records`, in multis of at most `operations_max`.

    The operations of a topic share one multi, unless they are more than `operations_max`.
    """
    multi: list[Operation] = []
    for _, of_topic in groupby(records, topic_of):
        operations = plan_operations(of_topic, image)
        if multi and len(multi) + len(operations) > operations_max:
            yield multi
            multi = []
        multi += operations
        while len(multi) > operations_max:
            yield multi[:operations_max]
            multi = multi[operations_max:]
    if multi:
        yield multi


def _token_change(token_id: str) -> Operation:
    return Create(TokenChangeZnode.prefix, token_id.encode(), sequential=True)


def _topic(name: str) -> ConfigResource:
    return ConfigResource("topics", name)


def _write_partition(
    record: PartitionRecord, topic: Topic | None, rooted: set[str]
) -> list[Operation]:
    path = PartitionZnode.path(record.topic, record.partition)
    content = PartitionZnode.encode(record.state)
    if record.state.partition_epoch > 0:
        return [SetData(path, content, record.state.partition_epoch - 1)]
    operations: list[Operation] = []
    if record.topic not in rooted:
        rooted.add(record.topic)
        if topic is None or not topic.has_partitions_znode:
            operations.append(Create(PartitionZnode.parent(record.topic)))
    if topic is None or record.partition not in topic.bare_partition_znodes:
        operations.append(Create(path.removesuffix("/state")))
    operations.append(Create(path, content))
    return operations


def _write_config(record: ConfigRecord, image: MetadataImage) -> list[Operation]:
    operations: list[Operation] = []
    steps = config_steps(record.resource, record.configs, image.configs, image.user_clients)
    for kind, resource, configs in steps:
        path = ConfigZnode.path(resource)
        content = None if configs is None else ConfigZnode.encode(configs)
        # The version is checked, because brokers below the bridge release and Kafka's tools write
        # configs too.
        version = image.config_versions.get(resource, ANY_VERSION)
        match kind:
            case StepKind.CREATE:
                operations.append(Create(path, content))
            case StepKind.SET:
                assert content is not None
                operations.append(SetData(path, content, version))
            case StepKind.DELETE:
                operations.append(Delete(path, version))
    if record.notify:
        change = ConfigChangeZnode.encode(record.resource)
        operations.append(Create(ConfigChangeZnode.prefix, change, sequential=True))
    return operations


def _write_acls(record: AclRecord, image: MetadataImage) -> list[Operation]:
    """Return the operations. As in Kafka, they check the version, because others write ACLs too."""
    path, version = AclZnode.path(record.pattern), image.acl_versions.get(record.pattern)
    write: Operation
    if not record.entries:
        write = Delete(path) if version is None else Delete(path, version)
    elif version is None:
        write = Create(path, AclZnode.encode(record.entries))
    else:
        write = SetData(path, AclZnode.encode(record.entries), version)
    change = AclChangeZnode.encode(record.pattern)
    return [write, Create(AclChangeZnode.prefix(record.pattern), change, sequential=True)]


def _remove_topic(topic: Topic, image: MetadataImage) -> list[Operation]:
    operations: list[Operation] = []
    for partition, state in enumerate(topic.states):
        path = PartitionZnode.path(topic.name, partition)
        if state.partition_epoch >= 0:
            operations.append(Delete(path))
        if state.partition_epoch >= 0 or partition in topic.bare_partition_znodes:
            operations.append(Delete(path.removesuffix("/state")))
    if topic.has_partitions_znode:
        operations.append(Delete(PartitionZnode.parent(topic.name)))
    operations.append(Delete(TopicZnode.path(topic.name)))
    if _topic(topic.name) in image.configs:
        operations.append(Delete(ConfigZnode.path(_topic(topic.name))))
    if topic.name in image.deletions:
        operations.append(Delete(DeletionMarkerZnode.path(topic.name)))
    return operations
