"""Which APIs this node has: the literal registries, built once with what they need."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.apis.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.alter_replica_log_dirs import AlterReplicaLogDirs
from broker_proxy.apis.api_versions import ApiVersions
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest, LocalApi, SplitApi
from broker_proxy.apis.cluster_view import ClusterView
from broker_proxy.apis.consumer_group_describe import ConsumerGroupDescribe
from broker_proxy.apis.consumer_group_heartbeat import ConsumerGroupHeartbeat
from broker_proxy.apis.delete_groups import DeleteGroups
from broker_proxy.apis.delete_records import DeleteRecords
from broker_proxy.apis.describe_acls import DescribeAcls
from broker_proxy.apis.describe_client_quotas import DescribeClientQuotas
from broker_proxy.apis.describe_cluster import DescribeCluster
from broker_proxy.apis.describe_configs import DescribeConfigs
from broker_proxy.apis.describe_delegation_token import DescribeDelegationToken
from broker_proxy.apis.describe_groups import DescribeGroups
from broker_proxy.apis.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.describe_producers import DescribeProducers
from broker_proxy.apis.describe_transactions import DescribeTransactions
from broker_proxy.apis.describe_user_scram_credentials import DescribeUserScramCredentials
from broker_proxy.apis.envelope import Envelope
from broker_proxy.apis.find_coordinator import FindCoordinator
from broker_proxy.apis.list_acls import ListAcls
from broker_proxy.apis.list_groups import ListGroups
from broker_proxy.apis.list_offsets import ListOffsets
from broker_proxy.apis.list_transactions import ListTransactions
from broker_proxy.apis.metadata import Metadata
from broker_proxy.apis.offset_delete import OffsetDelete
from broker_proxy.apis.offset_fetch import OffsetFetch
from broker_proxy.apis.records_policy import RecordsPolicy
from broker_proxy.apis.sasl_authenticate import SaslAuthenticate
from broker_proxy.apis.sasl_handshake import SaslHandshake
from broker_proxy.auto_topics import AutoTopics
from broker_proxy.coordinators import Coordinators
from broker_proxy.log_dirs import LogDirs, log_dirs_of
from broker_proxy.logger_levels import LoggerLevels
from broker_proxy.routing import DIALECTS
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.quirks import DENIAL_DUMPS_REQUEST, DumpedRequest, denial_text, quirks_of
from controller.apis.alter_acls import AlterAcls
from controller.apis.alter_client_quotas import AlterClientQuotas
from controller.apis.alter_configs import AlterConfigs
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.alter_topics import AlterTopics
from controller.apis.alter_user_scram_credentials import AlterUserScramCredentials
from controller.apis.base import AdminApi
from controller.apis.config_changes import ConfigChanges
from controller.apis.create_acls import CreateAcls
from controller.apis.create_delegation_token import CreateDelegationToken
from controller.apis.create_partitions import CreatePartitions
from controller.apis.create_topics import CreateTopics
from controller.apis.delete_acls import DeleteAcls
from controller.apis.delete_topics import DeleteTopics
from controller.apis.elect_leaders import ElectLeaders
from controller.apis.expire_delegation_token import ExpireDelegationToken
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from controller.apis.list_partition_reassignments import ListPartitionReassignments
from controller.apis.renew_delegation_token import RenewDelegationToken
from controller.apis.token_changes import TokenFinder
from controller.apis.topic_config_rules import TopicConfigRules
from controller.apis.update_features import UpdateFeatures
from controller.store.port import Mutant
from envelope.messages import RequestIdentity
from event_log.events import EnvelopeRefused
from node.config import LOOPBACK, NodeConfig

if TYPE_CHECKING:
    from node.node import Node

Current = Callable[[], EffectiveBrokerConfig]


def build_admin_apis(
    node_config: NodeConfig, current: Current, mutants: frozenset[Mutant]
) -> Mapping[int, AdminApi]:
    """Return every admin write API of the controller, by key."""
    config, secret = node_config.broker, node_config.token_secret
    rules = TopicConfigRules(current)
    changes = ConfigChanges(config)
    token_lifetime_ms = config.long("delegation.token.max.lifetime.ms")
    token_expiry_ms = config.long("delegation.token.expiry.time.ms")
    token_finder = TokenFinder(secret)
    apis: tuple[AdminApi, ...] = (
        CreateTopics(
            config,
            check_configs=rules.check,
            show_configs=rules.show,
            honours_client_bypass=Mutant.HONOUR_CLIENT_BYPASS in mutants,
        ),
        DeleteTopics(config),
        CreatePartitions(),
        AlterConfigs(changes),
        IncrementalAlterConfigs(changes),
        AlterPartitionReassignments(),
        ListPartitionReassignments(),
        ElectLeaders(),
        UpdateFeatures(),
        AlterTopics(),
        AlterAcls(node_config.authorizer is not None),
        CreateAcls(node_config.authorizer is not None),
        DeleteAcls(node_config.authorizer is not None),
        AlterClientQuotas(),
        AlterUserScramCredentials(),
        CreateDelegationToken(secret, token_lifetime_ms, token_expiry_ms),
        RenewDelegationToken(token_finder, token_expiry_ms),
        ExpireDelegationToken(token_finder),
    )
    return {api.api_key: api for api in apis}


def build_local_apis(node: Node, cluster_id: str, current: Current) -> Mapping[int, LocalApi]:
    """Return every API that the receiving broker answers, by key."""
    broker = node.config.broker
    may = node.authorization.for_client
    paths = log_dirs_of(broker.string("log.dirs"), broker.string("log.dir"))
    log_dirs = LogDirs(paths, node.cache, node.config.broker_id)
    view = _cluster_view(node, cluster_id)
    coordinators = Coordinators(node.cache, node.config.broker_id)
    quirks = quirks_of(broker.originals)
    dumped = _dumped if DENIAL_DUMPS_REQUEST in quirks else None
    auto_topics = _auto_topics(node, current)
    creates = broker.value("auto.create.topics.enable") is True
    apis: tuple[LocalApi, ...] = (
        Metadata(
            view,
            authorize_for=node.authorization.of_clients,
            auto_create=auto_topics.create_for_client if creates else None,
        ),
        ApiVersions(
            DIALECTS,
            lambda: 0,
            lambda: node.office.controller_ranges if node.config.forwards else {},
        ),
        _client_envelopes(node),
        SaslHandshake(),
        SaslAuthenticate(),
        DescribeCluster(view, authorize_for=node.authorization.of_clients),
        DescribeConfigs(current, node.watcher, node.cache, LoggerLevels(), may),
        DeleteRecords(
            node.config.broker_id, node.cache, current, node.watcher, may, _records_policy(node)
        ),
        AlterReplicaLogDirs(log_dirs, may),
        DescribeLogDirs(log_dirs, node.cache, may),
        FindCoordinator(
            view, coordinators, auto_topics, may, broker.int("request.timeout.ms") / 1000
        ),
        DescribeGroups(coordinators, may),
        DescribeAcls(lambda: node.acls, may, node.authorization.is_on, dumped),
        ListAcls(lambda: node.acls, may, node.authorization.is_on),
        ListGroups(),
        DeleteGroups(coordinators, may),
        OffsetFetch(coordinators, may, quirks),
        OffsetDelete(coordinators, may),
        ConsumerGroupDescribe(),
        ConsumerGroupHeartbeat(),
        DescribeProducers(node.config.broker_id, node.cache, may),
        DescribeTransactions(coordinators, may),
        ListTransactions(),
        ListOffsets(node.config.broker_id, node.cache, may, node.watcher.read_log_times),
        DescribeClientQuotas(node.watcher, may),
        DescribeUserScramCredentials(node.watcher, may, quirks),
        DescribeDelegationToken(node.tokens, may),
    )
    return {api.api_key: api for api in apis}


def _client_envelopes(node: Node) -> Envelope:
    def refused(request: ClientRequest, error: ErrorCode, reason: str) -> None:
        if error is not ErrorCode.NOT_CONTROLLER:
            node.metrics.envelope_refused()
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            node.metrics.authorization_failed()
        nobodys = RequestIdentity(node.config.broker_id, node.incarnation, 0)
        node.log.append(EnvelopeRefused(request.request_id, nobodys, int(error), reason))

    return Envelope(
        between_brokers=node.config.listener_for_envelopes,
        authorize_for=node.authorization.for_client,
        is_controller=lambda: node.office.controller_id == node.config.broker_id,
        serde=node.serde,
        ask=node.answer,
        refused=refused,
    )


def _cluster_view(node: Node, cluster_id: str) -> ClusterView:
    own = node.config.own
    return ClusterView(
        node.cache,
        broker_id=node.config.broker_id,
        cluster_id=cluster_id,
        controller_says={
            each.name: own.metadata_controller_id(each.name) for each in node.config.listeners
        },
        choose=random.randrange,
    )


def _auto_topics(node: Node, current: Current) -> AutoTopics:
    config = node.config
    return AutoTopics(
        node.forwarding.forward,
        current,
        waits=lambda: node.office.controller_id == config.broker_id or not config.forwards,
        broker=as_asker(config),
        broker_id=config.broker_id,
        log=node.log,
    )


def as_asker(config: NodeConfig) -> ClientConnectionInfo:
    """Return this broker as one that asks the controller for something of its own."""
    return ClientConnectionInfo(
        connection_id=f"broker-{config.broker_id}",
        listener_name=config.listeners[0].name,
        security_protocol=config.listeners[0].security_protocol,
        dialect="shipped",
        client_host=LOOPBACK,
        client_address=ipaddress.ip_address(LOOPBACK).packed,
        principal=config.inter_broker_principal,
    )


def build_split_apis(node: Node, current: Current) -> Mapping[int, SplitApi]:
    """Return the forwarded APIs of which the receiving broker answers a part, by key."""
    may = node.authorization.for_client
    checks = ConfigChecks(current, node.watcher, LoggerLevels(), may)
    quirks = quirks_of(node.config.broker.originals)
    apis: tuple[SplitApi, ...] = (
        AlterConfigsSplit(checks, quirks),
        IncrementalAlterConfigsSplit(checks),
    )
    return {api.api_key: api for api in apis}


def _records_policy(node: Node) -> RecordsPolicy | None:
    if node.record_policies is None:
        return None
    return RecordsPolicy(node.record_policies, node.cache, node.watcher)


def _dumped(request: ClientRequest) -> str:
    connection = request.connection
    return denial_text(
        DumpedRequest(
            connection.connection_id,
            connection.listener_name,
            connection.security_protocol,
            session=f"{random.getrandbits(32):08x}",
            size=None,
        ),
        None,
    )
