"""The cases of every API that needs no data plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from tests.integration.conformance import (
    acls,
    alter_configs,
    clusters,
    create_topics,
    delegation_tokens,
    delete_topics,
    describe_configs,
    groups,
    incremental_alter_configs,
    logins,
    metadata,
    partitions,
    quotas,
    records,
    transactions,
)
from tests.integration.conformance.case import Case

# Envelope has no cases, because only the controller accepts it;
# tests/data/client_envelopes.jsonl.gz covers it. APIs that need a data plane have no cases;
# tests/recordings/data-plane.jsonl.gz covers those that clients use.
CASES: Final[Mapping[ApiKey, tuple[Case, ...]]] = {
    ApiKey.ALTER_CLIENT_QUOTAS: quotas.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_CONFIGS: alter_configs.CASES,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: partitions.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_REPLICA_LOG_DIRS: records.ALTER_REPLICA_LOG_DIRS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: logins.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.API_VERSIONS: clusters.API_VERSIONS,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.CONSUMER_GROUP_DESCRIBE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CREATE_ACLS: acls.CREATE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN: delegation_tokens.CREATE_DELEGATION_TOKEN,
    ApiKey.CREATE_PARTITIONS: partitions.CREATE_PARTITIONS,
    ApiKey.CREATE_TOPICS: create_topics.CASES,
    ApiKey.DELETE_ACLS: acls.DELETE_ACLS,
    ApiKey.DELETE_GROUPS: groups.DELETE_GROUPS,
    ApiKey.DELETE_RECORDS: records.DELETE_RECORDS,
    ApiKey.DELETE_TOPICS: delete_topics.CASES,
    ApiKey.DESCRIBE_ACLS: acls.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: quotas.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_CLUSTER: clusters.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.CASES,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: delegation_tokens.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_GROUPS: groups.DESCRIBE_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS: records.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_PRODUCERS: transactions.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.DESCRIBE_TRANSACTIONS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: logins.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ELECT_LEADERS: partitions.ELECT_LEADERS,
    ApiKey.EXPIRE_DELEGATION_TOKEN: delegation_tokens.EXPIRE_DELEGATION_TOKEN,
    ApiKey.FIND_COORDINATOR: groups.FIND_COORDINATOR,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.CASES,
    ApiKey.LIST_GROUPS: groups.LIST_GROUPS,
    ApiKey.LIST_OFFSETS: records.LIST_OFFSETS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: partitions.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_TRANSACTIONS: transactions.LIST_TRANSACTIONS,
    ApiKey.METADATA: metadata.CASES,
    ApiKey.OFFSET_DELETE: groups.OFFSET_DELETE,
    ApiKey.OFFSET_FETCH: groups.OFFSET_FETCH,
    ApiKey.RENEW_DELEGATION_TOKEN: delegation_tokens.RENEW_DELEGATION_TOKEN,
    ApiKey.SASL_AUTHENTICATE: logins.SASL_AUTHENTICATE,
    ApiKey.SASL_HANDSHAKE: logins.SASL_HANDSHAKE,
    ApiKey.UPDATE_FEATURES: clusters.UPDATE_FEATURES,
}
