"""The answer when a whole request of a drafted API fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridgehead.kafka_wire.dialects import ALTER_ACLS, ALTER_TOPICS, LIST_ACLS
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.drafted import alter_acls, alter_topics, envelope, list_acls


def _envelope(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return envelope.EnvelopeResponse(error_code=error)


def _alter_topics(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    names = dict.fromkeys(topic.topic for topic in request.topics)
    results = [alter_topics.AlterTopicResult(topic=name, error_code=error) for name in names]
    return alter_topics.AlterTopicsResponse(topics=results)


def _list_acls(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return list_acls.ListAclsResponse(error_code=error)


def _alter_acls(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return alter_acls.AlterAclsResponse(
        responses=[
            alter_acls.AlterResourceAclsResult(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                results=[
                    alter_acls.AclResult(action=act.action, acl=act.acl, error_code=error)
                    for act in each.actions
                ],
            )
            for each in request.requests
        ]
    )


DRAFTED_ERROR_RESPONSES: Final[Mapping[int, Any]] = {
    58: _envelope,
    ALTER_TOPICS: _alter_topics,
    LIST_ACLS: _list_acls,
    ALTER_ACLS: _alter_acls,
}
