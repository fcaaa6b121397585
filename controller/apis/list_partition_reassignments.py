"""ListPartitionReassignments, key 46, version 0 (kafka-semantics 3.12). KIP-455.

Behaviour: reads the controller's image and writes nothing. Partitions that are not under
reassignment are left out, unknown ones too; topics of null ask for all. `timeout_ms` is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from cluster_model.image import MetadataImage
from cluster_model.reassignments import PartitionAssignment, reassignments
from controller.apis.base import Decided, Decision, Outcome, RequestContext
from controller.apis.config_changes import CLUSTER_NAME
from controller.apis.partition_elements import WHOLE_REQUEST, by_topic


class ListPartitionReassignments:
    """See the module."""

    api_key: ClassVar[int] = 46

    def decide(
        self,
        context: RequestContext,
        request: ListPartitionReassignmentsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. Nothing is decided but whether the client may ask."""
        if context.authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
            return Decision([])
        denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return Decision([Decided(WHOLE_REQUEST, denied)])

    def conflict(self, element: str) -> Outcome:
        """Cannot happen: nothing is written."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: ListPartitionReassignmentsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        denied = outcomes.get(WHOLE_REQUEST)
        if denied is not None:
            error = denied.error
            return self.refuse(request, context.api_version, error, error.default_text)
        topics = []
        for name, partitions in by_topic(_running(request, image)).items():
            topic = image.topics[name]
            running = []
            for partition in partitions:
                assignment = PartitionAssignment.of(topic, partition)
                running.append(
                    OngoingPartitionReassignment(
                        partition_index=partition,
                        replicas=list(assignment.replicas),
                        adding_replicas=list(assignment.adding),
                        removing_replicas=list(assignment.removing),
                    )
                )
            topics.append(OngoingTopicReassignment(name=name, partitions=running))
        return ListPartitionReassignmentsResponse(error_message="", topics=topics)

    def refuse(
        self,
        request: ListPartitionReassignmentsRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _running(
    request: ListPartitionReassignmentsRequest, image: MetadataImage
) -> Iterator[tuple[str, int]]:
    if request.topics is None:
        for name, topic in sorted(image.topics.items()):
            yield from ((name, partition) for partition in reassignments(topic))
        return
    for asked in request.topics:
        found = image.topics.get(asked.name)
        if found is not None:
            running = set(reassignments(found))
            yield from ((asked.name, p) for p in asked.partition_indexes if p in running)
