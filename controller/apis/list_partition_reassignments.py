"""ListPartitionReassignments, key 46, version 0 (docs/kafka/partitions.md). KIP-455.

Reads the controller's image and writes nothing. Omits unknown partitions and partitions that are
not under reassignment. If `topics` is null, it lists all reassignments. `timeout_ms` is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from cluster_model.partitions.reassignments import PartitionAssignment, reassignments
from controller.apis.base import AdminApi, Decision, Outcome, RequestContext, Results
from controller.apis.partition_elements import by_topic


class ListPartitionReassignments(AdminApi):
    """Decides ListPartitionReassignments requests."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_PARTITION_REASSIGNMENTS

    def decide(
        self,
        context: RequestContext,
        request: ListPartitionReassignmentsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. This only authorizes the client; response() reads the image."""
        if context.authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME):
            return Decision([])
        denied = Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return Decision.of_whole_request(denied)

    def response(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest, results: Results
    ) -> Any:
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        topics = []
        for name, partitions in by_topic(_running(request, results.image)).items():
            topic = results.image.topics[name]
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


def _running(
    request: ListPartitionReassignmentsRequest, image: MetadataImage
) -> Iterator[tuple[str, int]]:
    if request.topics is None:
        for name, topic in sorted(image.topics.items()):
            yield from ((name, partition) for partition in reassignments(topic))
        return
    for requested in request.topics:
        existing = image.topics.get(requested.name)
        if existing is not None:
            running = set(reassignments(existing))
            yield from ((requested.name, p) for p in requested.partition_indexes if p in running)
