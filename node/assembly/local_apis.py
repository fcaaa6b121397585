"""The APIs that this node's broker answers, by key."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.apis.admin.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.admin.alter_replica_log_dirs import AlterReplicaLogDirs
from broker_proxy.apis.admin.api_versions import ApiVersions
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.admin.describe_acls import DescribeAcls
from broker_proxy.apis.admin.describe_client_quotas import DescribeClientQuotas
from broker_proxy.apis.admin.describe_cluster import DescribeCluster
from broker_proxy.apis.admin.describe_configs import DescribeConfigs
from broker_proxy.apis.admin.describe_delegation_token import DescribeDelegationToken
from broker_proxy.apis.admin.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.admin.describe_user_scram_credentials import DescribeUserScramCredentials
from broker_proxy.apis.admin.envelope import EnvelopeApi
from broker_proxy.apis.admin.list_acls import ListAcls
from broker_proxy.apis.admin.log_dirs import LogDirs, log_dirs_of
from broker_proxy.apis.admin.logger_levels import LoggerLevels
from broker_proxy.apis.admin.metadata import Metadata
from broker_proxy.apis.admin.sasl import SaslAuthenticate, SaslHandshake
from broker_proxy.apis.base import LocalApi, SplitApi
from broker_proxy.apis.groups.consumer_groups import ConsumerGroupDescribe, ConsumerGroupHeartbeat
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.delete_groups import DeleteGroups
from broker_proxy.apis.groups.describe_groups import DescribeGroups
from broker_proxy.apis.groups.find_coordinator import FindCoordinator
from broker_proxy.apis.groups.group_ports import NoGroups, StoredGroups
from broker_proxy.apis.groups.list_groups import ListGroups
from broker_proxy.apis.groups.offset_delete import OffsetDelete
from broker_proxy.apis.groups.offset_fetch import OffsetFetch
from broker_proxy.apis.records.delete_records import DeleteRecords, EmptyLogs
from broker_proxy.apis.records.describe_producers import DescribeProducers
from broker_proxy.apis.records.list_offsets import ListOffsets
from broker_proxy.apis.records.records_policy import RecordsPolicy
from broker_proxy.apis.records.stored_log_dirs import StoredLogDirs
from broker_proxy.apis.records.transactions import DescribeTransactions, ListTransactions
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.auto_topics import AutoTopics
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.quirks import DENIAL_DUMPS_REQUEST, DumpedRequest, denial_text, quirks_of
from envelope.messages import RequestIdentity
from event_log.events import EnvelopeRejected
from node.assembly.data_plane import build_data_plane_apis
from node.assembly.parts import Parts
from node.assembly.record_apis import build_record_apis, offsets_of
from node.config import NodeConfig

Respond = Callable[[ClientRequest], Awaitable[bytes | None]]


def build_local_apis(parts: Parts, respond: Respond) -> Mapping[int, LocalApi]:
    """Return every API that the receiving broker answers.

    `response` executes the request in an Envelope that a client sent.
    """
    config, broker, follower = parts.config, parts.broker, parts.follower
    cache, stored, current = broker.cache, broker.stored, broker.configs.current
    authorization = parts.security.authorization
    authorize_for = authorization.for_client
    log_dirs = _log_dirs(parts)
    view = _cluster_view(config, cache, broker.state.cluster_id)
    coordinators = Coordinators(cache, config.broker_id)
    plane = broker.data_plane
    groups: StoredGroups = NoGroups(coordinators) if plane is None else plane.groups
    quirks = quirks_of(config.broker.originals)
    dumped = _dumped if DENIAL_DUMPS_REQUEST in quirks else None
    auto_topics = _auto_topics(parts)
    creates = config.broker.value("auto.create.topics.enable") is True
    request_timeout_s = config.broker.int("request.timeout.ms") / 1000
    apis: tuple[LocalApi, ...] = (
        Metadata(
            view,
            authorize_for=authorization.of_clients,
            auto_create=auto_topics.create_for_client if creates else None,
        ),
        ApiVersions(
            config.routes, lambda: 0, lambda: follower.controller_ranges if config.forwards else {}
        ),
        _client_envelopes(parts, respond),
        SaslHandshake(),
        SaslAuthenticate(),
        DescribeCluster(view, authorize_for=authorization.of_clients),
        DescribeConfigs(current, stored, cache, LoggerLevels(), authorize_for),
        _delete_records(parts),
        AlterReplicaLogDirs(log_dirs, authorize_for),
        DescribeLogDirs(log_dirs, cache, authorize_for),
        FindCoordinator(view, coordinators, auto_topics, authorize_for, request_timeout_s),
        DescribeGroups(groups, authorize_for),
        DescribeAcls(authorization.acls, authorize_for, authorization.is_on, dumped),
        ListAcls(authorization.acls, authorize_for, authorization.is_on),
        ListGroups(groups, authorize_for),
        DeleteGroups(groups, authorize_for),
        OffsetFetch(groups, coordinators, authorize_for, quirks),
        OffsetDelete(groups, coordinators, authorize_for),
        ConsumerGroupDescribe(),
        ConsumerGroupHeartbeat(),
        DescribeProducers(config.broker_id, cache, authorize_for),
        DescribeTransactions(coordinators, authorize_for),
        ListTransactions(),
        _list_offsets(parts),
        DescribeClientQuotas(stored, authorize_for),
        DescribeUserScramCredentials(stored, authorize_for, quirks),
        DescribeDelegationToken(parts.security.tokens, authorize_for),
    )
    records = build_data_plane_apis(
        broker.data_plane, config, cache, authorize_for, parts.instruments.metrics
    )
    more = (*records, *build_record_apis(parts), *_kraft_requests(parts))
    return {api.api_key: api for api in (*apis, *more)}


def _kraft_requests(parts: Parts) -> tuple[LocalApi, ...]:
    if parts.migration is None:
        return ()
    plane, authorization = parts.broker.data_plane, parts.security.authorization
    return parts.migration.local_apis(
        parts.broker.cache,
        authorization.for_client,
        plane.partitions if plane is not None else None,
    )


def _delete_records(parts: Parts) -> DeleteRecords:
    broker, policy = parts.broker, None
    if parts.record_policies is not None:
        policy = RecordsPolicy(parts.record_policies, broker.cache, broker.stored)
    return DeleteRecords(
        parts.config.broker_id,
        broker.cache,
        broker.configs.current,
        broker.stored,
        parts.security.authorization.for_client,
        policy,
        broker.data_plane.deletion if broker.data_plane is not None else EmptyLogs(),
    )


def _list_offsets(parts: Parts) -> ListOffsets:
    broker = parts.broker
    api = ListOffsets(
        parts.config.broker_id,
        broker.cache,
        parts.security.authorization.for_client,
        broker.stored.read_log_times,
    )
    if broker.data_plane is None:
        return api
    return replace(api, offsets_of=offsets_of(broker.data_plane.partitions))


def _log_dirs(parts: Parts) -> LogDirs:
    config, plane, cache = parts.config, parts.broker.data_plane, parts.broker.cache
    if plane is not None:
        return StoredLogDirs(plane.partitions, cache)
    paths = log_dirs_of(config.broker.string("log.dirs"), config.broker.string("log.dir"))
    return LogDirs(paths, cache, config.broker_id)


def build_split_apis(parts: Parts) -> Mapping[int, SplitApi]:
    """Return the APIs that the receiving broker answers in part and forwards in part."""
    checks = ConfigChecks(
        parts.broker.configs.current,
        parts.broker.stored,
        LoggerLevels(),
        parts.security.authorization.for_client,
    )
    apis: tuple[SplitApi, ...] = (
        AlterConfigsSplit(checks, quirks_of(parts.config.broker.originals)),
        IncrementalAlterConfigsSplit(checks),
    )
    return {api.api_key: api for api in apis}


def _client_envelopes(parts: Parts, respond: Respond) -> EnvelopeApi:
    config, instruments = parts.config, parts.instruments
    no_identity = RequestIdentity(config.broker_id, parts.broker.state.incarnation, 0)

    def rejected(request: ClientRequest, error: ErrorCode, reason: str) -> None:
        if error is not ErrorCode.NOT_CONTROLLER:
            instruments.metrics.envelope_rejected()
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            instruments.metrics.authorization_failed()
        instruments.log.append(
            EnvelopeRejected(request.request_id, no_identity, int(error), reason)
        )

    return EnvelopeApi(
        between_brokers=config.listener_for_envelopes,
        authorize_for=parts.security.authorization.for_client,
        is_controller=lambda: parts.follower.is_controller,
        serde=parts.security.serde,
        execute=respond,
        rejected=rejected,
    )


def _auto_topics(parts: Parts) -> AutoTopics:
    config, follower = parts.config, parts.follower
    return AutoTopics(
        parts.broker.forwarding.forward,
        parts.broker.configs.current,
        waits=lambda: follower.is_controller or not config.forwards,
        write_directly=parts.direct.write if parts.direct is not None else None,
        broker=config.own_client,
        log=parts.instruments.log,
    )


def _cluster_view(config: NodeConfig, cache: MetadataCache, cluster_id: str) -> ClusterView:
    return ClusterView(
        cache,
        broker_id=config.broker_id,
        cluster_id=cluster_id,
        named_controllers={
            listener.name: config.bridgehead.metadata_controller_id(listener.name)
            for listener in config.listeners
        },
        choose=random.randrange,
    )


def _dumped(request: ClientRequest) -> str:
    client = request.client
    return denial_text(
        DumpedRequest(
            request.connection.connection_id,
            client.listener_name,
            client.security_protocol,
            session=f"{random.getrandbits(32):08x}",
            size=None,
        ),
        None,
    )
