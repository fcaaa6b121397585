"""The answer when a whole request fails, in each API's own shape (kafka-semantics 3.2).

One literal table. Kafka fills these from the request; fields it leaves alone keep the schema's
default, so a message nobody sets is the empty string unless the schema says null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.acl_error_responses import ACL_ERROR_RESPONSES
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.drafted_error_responses import DRAFTED_ERROR_RESPONSES
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.group_error_responses import GROUP_ERROR_RESPONSES
from bridgehead.kafka_wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_user_scram_credentials,
    elect_leaders,
    incremental_alter_configs,
    list_offsets,
    list_partition_reassignments,
    metadata,
    sasl_authenticate,
    sasl_handshake,
    update_features,
)
from bridgehead.kafka_wire.messages.drafted import delete_records as drafted_delete_records
from bridgehead.kafka_wire.token_error_responses import TOKEN_ERROR_RESPONSES

ErrorResponse = Callable[[Any, int, ErrorCode, str | None], Any]


def _create_topics(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    if error is ErrorCode.NOT_CONTROLLER:
        message = ""  # never set by that handler: the schema's default
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(
                name=topic.name, error_code=error, error_message=message
            )
            for topic in request.topics
        ]
    )


def _delete_topics(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    if version >= 6:
        results = [
            delete_topics.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=error
            )
            for topic in request.topics
        ]
    else:
        results = [
            delete_topics.DeletableTopicResult(name=name, error_code=error)
            for name in request.topic_names
        ]
    return delete_topics.DeleteTopicsResponse(responses=results)


def _create_partitions(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return create_partitions.CreatePartitionsResponse(
        results=[
            create_partitions.CreatePartitionsTopicResult(
                name=topic.name, error_code=error, error_message=message
            )
            for topic in request.topics
        ]
    )


def _alter_configs(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _describe_configs(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_configs.DescribeConfigsResponse(
        results=[
            describe_configs.DescribeConfigsResult(
                error_code=error,
                error_message=error.default_text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _alter_partition_reassignments(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    messages = alter_partition_reassignments
    if error is ErrorCode.NOT_CONTROLLER:
        return messages.AlterPartitionReassignmentsResponse(
            error_code=error, error_message=error.default_text
        )
    return messages.AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=message,
        responses=[
            messages.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    messages.ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _list_partition_reassignments(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    messages = list_partition_reassignments
    if error is ErrorCode.NOT_CONTROLLER:
        return messages.ListPartitionReassignmentsResponse(
            error_code=error, error_message=error.default_text
        )
    return messages.ListPartitionReassignmentsResponse(
        error_code=error,
        error_message=message,
        topics=[
            messages.OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    messages.OngoingPartitionReassignment(partition_index=partition)
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def _delete_records(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return delete_records.DeleteRecordsResponse(
        topics=[
            delete_records.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    drafted_delete_records.DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index,
                        low_watermark=-1,
                        error_code=error,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _describe_log_dirs(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_log_dirs.DescribeLogDirsResponse(error_code=error)


def _list_offsets(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return list_offsets.ListOffsetsResponse(
        topics=[
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _elect_leaders(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    # Who is not controller says so of each partition only.
    not_controller = error is ErrorCode.NOT_CONTROLLER
    return elect_leaders.ElectLeadersResponse(
        error_code=ErrorCode.NONE if not_controller else error,
        replica_election_results=[
            elect_leaders.ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    elect_leaders.PartitionResult(
                        partition_id=partition, error_code=error, error_message=message
                    )
                    for partition in asked.partitions
                ],
            )
            for asked in request.topic_partitions or ()
        ],
    )


def _update_features(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    if error is ErrorCode.NOT_CONTROLLER:
        message = error.default_text
    return update_features.UpdateFeaturesResponse(error_code=error, error_message=message)


def _metadata(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return metadata.MetadataResponse(
        topics=[
            metadata.MetadataResponseTopic(
                error_code=error, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in request.topics or ()
        ]
    )


def _describe_cluster(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_cluster.DescribeClusterResponse(error_code=error, error_message=message)


def _alter_client_quotas(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.AlterClientQuotasEntryData(
                error_code=error,
                error_message=error.default_text,
                entity=[
                    alter_client_quotas.AlterClientQuotasEntryDataEntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _describe_client_quotas(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    return describe_client_quotas.DescribeClientQuotasResponse(
        error_code=error, error_message=message, entries=None
    )


def _alter_user_scram_credentials(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    changes = (*request.deletions, *request.upsertions)
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=user, error_code=error, error_message=message
            )
            for user in sorted({change.name for change in changes})
        ]
    )


def _describe_user_scram_credentials(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    # Kafka never answers where users are null: it stumbles over them.
    return describe_user_scram_credentials.DescribeUserScramCredentialsResponse(
        error_code=error,
        error_message=message,
        results=[
            describe_user_scram_credentials.DescribeUserScramCredentialsResult(
                error_code=error, error_message=message
            )
            for _ in request.users or ()
        ],
    )


def _api_versions(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    response = api_versions.ApiVersionsResponse(error_code=error)
    if error is ErrorCode.UNSUPPORTED_VERSION:
        spec = API_SPECS[18]
        response.api_keys = [api_versions.ApiVersion(spec.key, spec.min_version, spec.max_version)]
    return response


def _sasl_handshake(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return sasl_handshake.SaslHandshakeResponse(error_code=error)


def _sasl_authenticate(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return sasl_authenticate.SaslAuthenticateResponse(error_code=error, error_message=message)


ERROR_RESPONSES: Final[Mapping[int, ErrorResponse]] = {
    2: _list_offsets,
    3: _metadata,
    17: _sasl_handshake,
    18: _api_versions,
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    32: _describe_configs,
    33: _alter_configs,
    35: _describe_log_dirs,
    36: _sasl_authenticate,
    37: _create_partitions,
    43: _elect_leaders,
    44: _incremental_alter_configs,
    45: _alter_partition_reassignments,
    46: _list_partition_reassignments,
    48: _describe_client_quotas,
    49: _alter_client_quotas,
    50: _describe_user_scram_credentials,
    51: _alter_user_scram_credentials,
    57: _update_features,
    60: _describe_cluster,
    **ACL_ERROR_RESPONSES,
    **GROUP_ERROR_RESPONSES,
    **TOKEN_ERROR_RESPONSES,
    **DRAFTED_ERROR_RESPONSES,
}


def error_response(
    api_key: int, request: Any, version: int, error: ErrorCode, message: str | None = None
) -> Any:
    """Return the response message that says `error` for everything that was asked."""
    return ERROR_RESPONSES[api_key](request, version, error, message)
