"""ElectLeaders, key 43, versions 0 to 2 (kafka-semantics 3.13, 5.3). KIP-183, KIP-460.

Behaviour: a preferred election gives a partition back to its first replica, an unclean one gives
a partition without a living leader to any living replica. Partitions of null ask for all of them;
those that need no election are left out then. The answer waits until brokers are told.

Version notes:
    0: preferred elections only, and no error of the whole request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from cluster_model.elections import elect_preferred, elect_unclean
from cluster_model.image import MetadataImage, Topic
from cluster_model.records import PartitionRecord, PartitionState
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext, Wait, WaitFor
from controller.apis.config_changes import CLUSTER_NAME
from controller.apis.partition_elements import (
    WHOLE_REQUEST,
    by_topic,
    partition_element,
    topic_partition,
)

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


class ElectLeaders:
    """See the module."""

    api_key: ClassVar[int] = 43

    def decide(
        self,
        context: RequestContext,
        request: ElectLeadersRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if request.election_type not in (_PREFERRED, _UNCLEAN):
            return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)  # As Kafka: kafka-semantics 9.7.
        elements: list[Decided] = []
        for name, partition in dict.fromkeys(_asked(request, image)):
            element = partition_element(name, partition)
            if element in settled:
                continue
            try:
                elected = _elect(name, partition, request.election_type, image)
            except ApiError as refused:
                elements.append(Decided(element, Outcome(refused.error, refused.message)))
                continue
            record = PartitionRecord(name, partition, elected)
            elements.append(Decided(element, DONE, (record,)))
        named = [*settled, *(decided.element for decided in elements)]
        keys = {element: topic_partition(element) for element in named}
        return Decision(elements, Wait(WaitFor.ELECTION, keys, request.timeout_ms))

    def conflict(self, element: str) -> Outcome:
        """The partition's state is not what the image says."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: ElectLeadersRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer."""
        whole = outcomes.get(WHOLE_REQUEST)
        if whole is not None:
            return self.refuse(request, context.api_version, whole.error, None)
        results = []
        for name, partitions in by_topic(map(topic_partition, outcomes)).items():
            told = []
            for partition in partitions:
                element = partition_element(name, partition)
                outcome, late = outcomes[element], element in unfinished
                told.append(
                    PartitionResult(
                        partition_id=partition,
                        error_code=ErrorCode.REQUEST_TIMED_OUT if late else outcome.error,
                        error_message=None if late else outcome.message,
                    )
                )
            results.append(ReplicaElectionResult(topic=name, partition_result=told))
        return ElectLeadersResponse(replica_election_results=results)

    def refuse(
        self, request: ElectLeadersRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _refused(error: ErrorCode) -> Decision:
    return Decision([Decided(WHOLE_REQUEST, Outcome(error))])


def _asked(request: ElectLeadersRequest, image: MetadataImage) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for name, topic in sorted(image.topics.items()):
            deleting = name in image.deletions
            for partition in range(len(topic.states)):
                if deleting or not _is_led(topic, partition, request.election_type, image):
                    yield name, partition
        return
    for asked in request.topic_partitions:
        yield from ((asked.topic, partition) for partition in asked.partitions)


def _is_led(topic: Topic, partition: int, election_type: int, image: MetadataImage) -> bool:
    """True when the election that is asked for would change nothing."""
    leader = topic.states[partition].leader
    if election_type == _PREFERRED:
        return leader in topic.assignment[partition][:1]
    return leader in image.brokers


def _elect(name: str, partition: int, election_type: int, image: MetadataImage) -> PartitionState:
    """Every check in Kafka's order; return the state with the new leader."""
    topic = image.topics.get(name)
    if topic is None or not 0 <= partition < len(topic.states):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if name in image.deletions:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    state, assignment = topic.states[partition], topic.assignment[partition]
    live, epoch = image.brokers, image.controller_epoch
    if _is_led(topic, partition, election_type, image):
        not_needed = ErrorCode.ELECTION_NOT_NEEDED
        raise ApiError(not_needed, not_needed.default_text)
    preferred = election_type == _PREFERRED
    elect = elect_preferred if preferred else elect_unclean
    elected = elect(state, assignment, live, epoch)
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
            f"Failed to elect leader for partition {name}-{partition} under strategy {strategy}",
        )
    return elected
