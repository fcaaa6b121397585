"""ControlledShutdown, key 7, versions 0 to 3: a broker asks to lead nothing before it stops.

Served only with bridgehead.data.plane=true. The controller moves the leaders off the broker, and
takes the broker out of every ISR that has another member. The answer names the partitions that the
broker still leads because no other replica is in sync. Partitions with one replica do not count.
The broker has stopped to follow leaders before it asks, so it does not join an ISR again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from cluster_model.authorization import CLUSTER_NAME
from cluster_model.elections import react_to_live_brokers
from cluster_model.image import MetadataImage
from cluster_model.records import NO_LEADER, PartitionRecord, PartitionState
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results
from controller.apis.partition_elements import partition_element

_EPOCH_FROM: Final = 2


class ControlledShutdown(AdminApi):
    """Decides ControlledShutdown requests."""

    api_key: ClassVar[ApiKey] = ApiKey.CONTROLLED_SHUTDOWN

    def decide(
        self,
        context: RequestContext,
        request: ControlledShutdownRequest,
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
        if broker is None:
            return Decision.of_whole_request(Outcome(ErrorCode.BROKER_NOT_AVAILABLE))
        if context.api_version >= _EPOCH_FROM and broker.epoch != request.broker_epoch:
            return Decision.of_whole_request(Outcome(ErrorCode.STALE_BROKER_EPOCH))
        moves = (
            (partition_element(topic, number), topic, number, after)
            for topic, number, after in _moves(image, request.broker_id)
        )
        return Decision(
            [
                Decided(element, DONE, (PartitionRecord(topic, number, after),))
                for element, topic, number, after in moves
                if element not in committed
            ]
        )

    def response(
        self, context: RequestContext, request: ControlledShutdownRequest, results: Results
    ) -> Any:
        """See AdminApi.response. The remaining partitions are those of the current image."""
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        remaining = [
            RemainingPartition(topic, number)
            for topic, number, state in _replicated(results.image)
            if state.leader == request.broker_id
        ]
        return ControlledShutdownResponse(ErrorCode.NONE, remaining)


def _replicated(image: MetadataImage) -> Iterator[tuple[str, int, PartitionState]]:
    """Return the partitions that have several replicas and are not being deleted."""
    for topic in image.topics.values():
        if topic.name not in image.deletions:
            for number, state in enumerate(topic.states):
                if len(topic.assignment[number]) > 1:
                    yield topic.name, number, state


def _moves(image: MetadataImage, leaving: int) -> Iterator[tuple[str, int, PartitionState]]:
    """Return the new state of each partition that can do without the broker."""
    live = frozenset(image.brokers) - {leaving}
    for topic, number, state in _replicated(image):
        if leaving not in state.isr or state.leader == NO_LEADER:
            continue
        after = react_to_live_brokers(
            state,
            image.topics[topic].assignment[number],
            live,
            controller_epoch=image.controller_epoch,
            unclean=False,
            stores_records=True,
        )
        if after is not None and after.leader != NO_LEADER:
            yield topic, number, after
