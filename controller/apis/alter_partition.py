"""AlterPartition, key 56, versions 0 to 3: a leader changes the ISR (docs/kafka/partitions.md).

KIP-497, KIP-841. Served only with bridgehead.data.plane=true. Kafka with ZooKeeper does not check
that the sender leads the partition, nor that the ISR has only replicas of the partition. Like
KRaft, this controller checks both. A partition that fails one of these checks gets INVALID_REQUEST.

Version notes:
    1: the request has the leader's recovery state.
    2: topics are named by id; INELIGIBLE_REPLICA instead of OPERATION_NOT_ATTEMPTED.
    3: the ISR has broker epochs, which only KRaft uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicData,
    AlterPartitionTopicDataPartitionData,
    PartitionData,
    TopicData,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from cluster_model.records import NO_STATE_ZNODE, PartitionRecord, PartitionState, Replicas
from cluster_model.znodes.layout import encode_uuid
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results
from controller.apis.partition_elements import partition_element

_IDS_FROM: Final = 2
_EPOCHS_FROM: Final = 3
_RECOVERING: Final = 1


class AlterPartition(AdminApi):
    """Decides AlterPartition requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION

    def decide(
        self,
        context: RequestContext,
        request: AlterPartitionRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A client needs CLUSTER_ACTION; a broker's own request does not."""
        if not (
            context.made_by_broker or context.authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
        ):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision.of_whole_request(denied)
        broker = image.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return Decision.of_whole_request(Outcome(ErrorCode.STALE_BROKER_EPOCH))
        proposals = dict(_proposals(request, context.api_version, image))
        return Decision(
            [
                _decide(element, proposal, context.api_version, image)
                for element, proposal in proposals.items()
                if element not in committed
            ]
        )

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict. After this error the leader waits for the newer state."""
        return Outcome(ErrorCode.INVALID_UPDATE_VERSION)

    def response(
        self, context: RequestContext, request: AlterPartitionRequest, results: Results
    ) -> Any:
        """See AdminApi.response. A success shows the partition's state in the current image."""
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        topics = []
        for topic in request.topics:
            name = _name(topic, context.api_version, results.image)
            numbers = dict.fromkeys(partition.partition_index for partition in topic.partitions)
            rows = [_row(name or _unknown(topic), number, results) for number in numbers]
            topics.append(AlterPartitionTopicData(topic.topic_id, topic.topic_name, rows))
        return AlterPartitionResponse(topics=topics)


class _Proposal(NamedTuple):
    """The state that a leader wants; `topic` is None if the request's topic id is unknown."""

    topic: str | None
    partition: int
    leader: int
    leader_epoch: int
    isr: Replicas
    partition_epoch: int
    recovering: bool


def _proposals(
    request: AlterPartitionRequest, version: int, image: MetadataImage
) -> Iterator[tuple[str, _Proposal]]:
    for topic in request.topics:
        name = _name(topic, version, image)
        for partition in topic.partitions:
            element = partition_element(name or _unknown(topic), partition.partition_index)
            yield (
                element,
                _Proposal(
                    name,
                    partition.partition_index,
                    request.broker_id,
                    partition.leader_epoch,
                    _isr(partition, version),
                    partition.partition_epoch,
                    partition.leader_recovery_state == _RECOVERING,
                ),
            )


def _isr(partition: PartitionData, version: int) -> Replicas:
    if version >= _EPOCHS_FROM:
        return tuple(epoch.broker_id for epoch in partition.new_isr_with_epochs)
    return tuple(partition.new_isr)


def _name(topic: TopicData, version: int, image: MetadataImage) -> str | None:
    return topic.topic_name if version < _IDS_FROM else image.topic_names.get(topic.topic_id)


def _unknown(topic: TopicData) -> str:
    """Return the text that replaces the name of a topic whose id is unknown."""
    return f"id:{encode_uuid(topic.topic_id)}"


def _decide(element: str, proposal: _Proposal, version: int, image: MetadataImage) -> Decided:
    if proposal.topic is None:
        return Decided(element, Outcome(ErrorCode.UNKNOWN_TOPIC_ID))
    topic, number = image.topics.get(proposal.topic), proposal.partition
    if topic is None or not 0 <= number < len(topic.states):
        return Decided(element, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    state = topic.states[number]
    if state.partition_epoch == NO_STATE_ZNODE:
        return Decided(element, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    error = _error(proposal, state, topic.assignment[number], version, image)
    if error is not None:
        return Decided(element, Outcome(error))
    if _is_reached(proposal, state):
        return Decided(element, DONE)
    after = PartitionState(
        state.leader,
        state.leader_epoch,
        proposal.isr,
        image.controller_epoch,
        state.partition_epoch + 1,
        proposal.recovering,
    )
    return Decided(element, DONE, (PartitionRecord(topic.name, number, after),))


def _is_reached(proposal: _Proposal, state: PartitionState) -> bool:
    """Return whether the state is already as proposed, for example when a request is resent."""
    return (proposal.leader, proposal.isr, proposal.recovering) == (
        state.leader,
        state.isr,
        state.recovering,
    )


def _error(
    proposal: _Proposal,
    state: PartitionState,
    assignment: Replicas,
    version: int,
    image: MetadataImage,
) -> ErrorCode | None:
    """Make Kafka's checks in Kafka's order, and our own; return the first error."""
    epochs, known_epoch = proposal.leader_epoch, state.leader_epoch
    if proposal.partition_epoch > state.partition_epoch or epochs > known_epoch:
        return ErrorCode.NOT_CONTROLLER  # The leader has a state from a newer controller.
    if epochs < known_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if _is_reached(proposal, state):
        return None
    if proposal.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if proposal.recovering and (len(proposal.isr) > 1 or not state.recovering):
        return ErrorCode.INVALID_REQUEST
    if proposal.leader != state.leader or not _is_valid(proposal, assignment):
        return ErrorCode.INVALID_REQUEST
    if any(replica not in image.brokers for replica in proposal.isr):
        ineligible = version >= _IDS_FROM
        return ErrorCode.INELIGIBLE_REPLICA if ineligible else ErrorCode.OPERATION_NOT_ATTEMPTED
    return None


def _is_valid(proposal: _Proposal, assignment: Replicas) -> bool:
    """Return whether the ISR has the leader, and only replicas of the partition, each once."""
    isr = proposal.isr
    return (
        proposal.leader in isr
        and len(set(isr)) == len(isr)
        and all(replica in assignment for replica in isr)
    )


def _row(name: str, number: int, results: Results) -> AlterPartitionTopicDataPartitionData:
    outcome = results.outcomes.get(partition_element(name, number))
    if outcome is None:  # The topic with this id was created or deleted after the decision.
        return AlterPartitionTopicDataPartitionData(number, ErrorCode.UNKNOWN_TOPIC_ID)
    topic = results.image.topics.get(name)
    if not outcome.succeeded:
        return AlterPartitionTopicDataPartitionData(number, outcome.error)
    if topic is None:  # The topic was deleted meanwhile.
        return AlterPartitionTopicDataPartitionData(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    state = topic.states[number]
    return AlterPartitionTopicDataPartitionData(
        partition_index=number,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=int(state.recovering),
        partition_epoch=state.partition_epoch,
    )
