"""ElectLeaders, key 43, versions 0 to 2 (docs/kafka/partitions.md). KIP-183, KIP-460.

A preferred election makes a partition's first replica its leader. An unclean election is for a
partition without a live leader: it makes a live replica the leader, if possible one in the ISR. If
`topic_partitions` is null, the request is for all partitions that need an election or belong to a
topic that is being deleted. The response waits until every elected partition has a leader, or until
the timeout.

Version notes:
    0: preferred elections only, no error code for the whole request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage, Topic
from cluster_model.partitions.elections import elect_preferred, elect_unclean
from cluster_model.records import PartitionRecord, PartitionState
from controller.apis.base import (
    DONE,
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
    Wait,
    WaitFor,
)
from controller.apis.partition_elements import (
    by_topic,
    partition_element,
    topic_partition,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


class ElectLeaders(AdminApi):
    """Decides ElectLeaders requests."""

    __slots__ = ("_stores_records",)

    api_key: ClassVar[ApiKey] = ApiKey.ELECT_LEADERS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(stores_records=settings.stores_records)

    def __init__(self, *, stores_records: bool = False) -> None:
        """`stores_records`: the value of bridgehead.data.plane."""
        self._stores_records = stores_records

    def decide(
        self,
        context: RequestContext,
        request: ElectLeadersRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision.of_whole_request(denied)
        if request.election_type not in (_PREFERRED, _UNCLEAN):
            # As in Kafka: docs/kafka/misbehaviour.md.
            return Decision.of_whole_request(Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))
        elements: list[Decided] = []
        for name, partition in dict.fromkeys(_requested(request, image)):
            element = partition_element(name, partition)
            if element in committed:
                continue
            try:
                elected = self._elect(name, partition, request.election_type, image)
            except ApiError as error:
                elements.append(Decided(element, Outcome.of(error)))
                continue
            record = PartitionRecord(name, partition, elected)
            elements.append(Decided(element, DONE, (record,)))
        named = [*committed, *(decided.element for decided in elements)]
        keys = {element: topic_partition(element) for element in named}
        return Decision(elements, Wait(WaitFor.ELECTION, keys, request.timeout_ms))

    def response(
        self, context: RequestContext, request: ElectLeadersRequest, results: Results
    ) -> Any:
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        rows = []
        for name, partitions in by_topic(map(topic_partition, results.outcomes)).items():
            partition_results = []
            for partition in partitions:
                element = partition_element(name, partition)
                outcome, late = results.outcomes[element], element in results.unfinished
                partition_results.append(
                    PartitionResult(
                        partition_id=partition,
                        error_code=ErrorCode.REQUEST_TIMED_OUT if late else outcome.error,
                        error_message=None if late else outcome.message,
                    )
                )
            rows.append(ReplicaElectionResult(topic=name, partition_result=partition_results))
        return ElectLeadersResponse(replica_election_results=rows)

    def _elect(
        self, name: str, partition: int, election_type: int, image: MetadataImage
    ) -> PartitionState:
        """Make Kafka's checks in Kafka's order; return the state with the new leader."""
        topic = image.topics.get(name)
        if topic is None or not 0 <= partition < len(topic.states):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        if name in image.deletions:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
        state, assignment = topic.states[partition], topic.assignment[partition]
        live, epoch = image.brokers, image.controller_epoch
        if _is_led(topic, partition, election_type, image):
            raise ApiError(
                ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.default_text
            )
        preferred = election_type == _PREFERRED
        if preferred:
            elected = elect_preferred(state, assignment, live, epoch)
        else:
            stores = self._stores_records
            elected = elect_unclean(state, assignment, live, epoch, stores_records=stores)
        if elected is None:
            strategy = (
                "PreferredReplicaPartitionLeaderElectionStrategy"
                if preferred
                else "OfflinePartitionLeaderElectionStrategy(true)"
            )
            raise ApiError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
                if preferred
                else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"Failed to elect leader for partition {name}-{partition} "
                f"under strategy {strategy}",
            )
        return elected


def _requested(request: ElectLeadersRequest, image: MetadataImage) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for name, topic in sorted(image.topics.items()):
            deleting = name in image.deletions
            for partition in range(len(topic.states)):
                if deleting or not _is_led(topic, partition, request.election_type, image):
                    yield name, partition
        return
    for requested in request.topic_partitions:
        yield from ((requested.topic, partition) for partition in requested.partitions)


def _is_led(topic: Topic, partition: int, election_type: int, image: MetadataImage) -> bool:
    """True if the election would change nothing."""
    leader = topic.states[partition].leader
    if election_type == _PREFERRED:
        return leader in topic.assignment[partition][:1]
    return leader in image.brokers
