"""InitProducerId, OffsetForLeaderEpoch and DescribeProducers on a node with a data plane."""

from __future__ import annotations

from bridgehead.kafka_wire.messages.describe_producers import ProducerState
from broker_proxy.apis.base import LocalApi
from broker_proxy.apis.records.describe_producers import DescribeProducers, ProducersOf
from broker_proxy.apis.records.init_producer_id import InitProducerId
from broker_proxy.apis.records.list_offsets import OffsetsOf
from broker_proxy.apis.records.offset_for_leader_epoch import OffsetForLeaderEpoch
from broker_proxy.apis.records.producer_ids import ProducerIds
from broker_proxy.forwarding.controller_requests import ControllerRequests
from data_plane.partitions import Partitions
from data_plane.replica_offsets import ReplicaOffsets
from node.assembly.parts import Parts


def offsets_of(partitions: Partitions) -> OffsetsOf:
    """Return a function that finds the offsets of a replica, for ListOffsets."""

    def find(topic: str, partition: int) -> ReplicaOffsets:
        return ReplicaOffsets(partitions.get(topic, partition), partitions.now_ms())

    return find


def producers_of(partitions: Partitions) -> ProducersOf:
    """Return a function that finds the producers of a replica, for DescribeProducers."""

    def find(topic: str, partition: int) -> list[ProducerState]:
        producers = partitions.get(topic, partition).log.producers.by_id
        return [
            ProducerState(
                producer_id, state.epoch, state.last_sequence, state.timestamp, coordinator_epoch=-1
            )
            for producer_id, state in producers.items()
        ]

    return find


def build_record_apis(parts: Parts) -> tuple[LocalApi, ...]:
    """Return the three APIs; none without a data plane.

    This DescribeProducers replaces the one that node.assembly.local_apis builds.
    """
    plane = parts.broker.data_plane
    if plane is None:
        return ()
    config, authorization, state = parts.config, parts.security.authorization, parts.broker.state
    requests = ControllerRequests(
        parts.broker.forwarding.forward, config.own_client, state.request_prefix
    )
    ids = ProducerIds(config.broker_id, lambda: state.epoch, requests)
    return (
        InitProducerId(ids, authorization.for_client, authorization.on_any),
        OffsetForLeaderEpoch(plane.partitions, authorization.for_client),
        DescribeProducers(
            config.broker_id,
            parts.broker.cache,
            authorization.for_client,
            producers_of(plane.partitions),
        ),
    )
