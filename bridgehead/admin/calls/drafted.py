"""AlterTopics of KIP-4, for listeners with the dialect `drafted`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bridgehead.admin.errors import AdminError
from bridgehead.admin.requests import Batch, BrokerResponse, Plan, Request
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey


class TopicAlteration(NamedTuple):
    """A change of a topic (KIP-4 §Alter Topic Request).

    If `assignment` is given, `partitions` and `replication_factor` are ignored.

    Args:
        name: the topic.
        partitions: the new number of partitions; None: no change.
        replication_factor: the new number of replicas of every partition; None: no change.
        assignment: the broker ids of each partition that is to be moved or added.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Mapping[int, Sequence[int]] | None = None


def alter_topics(
    alterations: Collection[TopicAlteration],
) -> Plan[dict[str, AdminError | None]]:
    """Add partitions and move replicas; return the error of each topic (KIP-4 AlterTopics).

    A success means that the change has begun.

    Raises:
        UnsupportedVersionError: the listener's dialect is not `drafted`.
    """
    from bridgehead.kafka_wire.messages.drafted.alter_topics import (
        AlterTopic,
        AlterTopicsRequest,
        PartitionReplicas,
    )

    def request(left: Mapping[str, TopicAlteration]) -> Request:
        message = AlterTopicsRequest(
            [
                AlterTopic(
                    alteration.name,
                    -1 if alteration.partitions is None else alteration.partitions,
                    -1 if alteration.replication_factor is None else alteration.replication_factor,
                    [
                        PartitionReplicas(at, list(to))
                        for at, to in (alteration.assignment or {}).items()
                    ],
                )
                for alteration in left.values()
            ]
        )
        return Request(ApiKey.ALTER_TOPICS, lambda _: message, dialect="drafted")

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for topic in response.message.topics:
            yield topic.topic, response.done(topic)

    return (
        yield from Batch(
            {alteration.name: alteration for alteration in alterations}, request, results
        ).errors()
    )
