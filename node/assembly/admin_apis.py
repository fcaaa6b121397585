"""The APIs that this node's controller decides, by key."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_model.configs.broker_configs import CurrentConfig
from controller.apis.allocate_producer_ids import AllocateProducerIds
from controller.apis.alter_acls import AlterAcls
from controller.apis.alter_client_quotas import AlterClientQuotas
from controller.apis.alter_configs import AlterConfigs
from controller.apis.alter_partition import AlterPartition
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.alter_topics import AlterTopics
from controller.apis.alter_user_scram_credentials import AlterUserScramCredentials
from controller.apis.base import AdminApi
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
from node.config import NodeConfig


def build_admin_apis(node_config: NodeConfig, current: CurrentConfig) -> Mapping[int, AdminApi]:
    """Return all of them. `current` returns the effective broker configs."""
    config, secret = node_config.broker, node_config.token_secret
    rules = TopicConfigRules(current)
    token_lifetime_ms = config.long("delegation.token.max.lifetime.ms")
    token_expiry_ms = config.long("delegation.token.expiry.time.ms")
    token_finder = TokenFinder(secret)
    apis: tuple[AdminApi, ...] = (
        CreateTopics(
            config,
            check_configs=rules.check,
            show_configs=rules.show,
        ),
        DeleteTopics(config),
        CreatePartitions(),
        AlterConfigs(config),
        IncrementalAlterConfigs(config),
        AlterPartitionReassignments(),
        ListPartitionReassignments(),
        ElectLeaders(stores_records=node_config.bridgehead.data_plane_enabled),
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
    if node_config.bridgehead.data_plane_enabled:
        apis += (AlterPartition(), AllocateProducerIds())
    return {api.api_key: api for api in apis}
