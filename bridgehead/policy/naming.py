r"""A policy to start from: names of topics, and who may delete.

    topic.management.policy.class.name=bridgehead.policy.naming.TopicNaming
    bridgehead.policy.naming.pattern=[a-z]+\.[a-z0-9-]+
    bridgehead.policy.naming.owner.prefix=true
    bridgehead.policy.naming.protected=billing\..*

`pattern` is what the whole name of a new topic must match. With `owner.prefix` a name must begin
with its creator's name and a dot. A topic that `protected` matches is not deleted, nor its records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bridgehead.policy.topic_management import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    TopicManagementPolicy,
)
from bridgehead.policy.violation import PolicyViolationException

PREFIX: Final = "bridgehead.policy.naming."
_SETTINGS: Final = ("pattern", "owner.prefix", "protected")


class TopicNaming(TopicManagementPolicy):
    """Rules about names. Internal topics are exempt; topics that exist keep their names."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._protected: re.Pattern[str] | None = None
        self._owner_prefix = False

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the rules; a setting that is none, or no regular expression, is refused."""
        for name in sorted(n for n in configs if n.startswith(PREFIX)):
            if name.removeprefix(PREFIX) not in _SETTINGS:
                raise ValueError(f"{name} is not a setting; there are {', '.join(_SETTINGS)}")
        self._pattern = _compiled(configs, "pattern")
        self._protected = _compiled(configs, "protected")
        self._owner_prefix = configs.get(f"{PREFIX}owner.prefix", "").strip().lower() == "true"

    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
        """See TopicManagementPolicy."""
        topic, principal = request_metadata.topic, request_metadata.principal
        if request_metadata.requested_state.internal:
            return
        if self._pattern is not None and self._pattern.fullmatch(topic) is None:
            raise PolicyViolationException(
                f"Topic name '{topic}' does not match {self._pattern.pattern}."
            )
        if not self._owner_prefix:
            return
        if principal is None:
            raise PolicyViolationException("Topics are named after their creator: log in first.")
        if not topic.startswith(f"{principal.name}."):
            raise PolicyViolationException(
                f"Topic name '{topic}' must begin with '{principal.name}.', its creator's name."
            )

    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """A topic's name cannot be altered."""

    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        """See TopicManagementPolicy."""
        self._refuse_protected(request_metadata.topic, "is protected and cannot be deleted")

    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        """See TopicManagementPolicy."""
        self._refuse_protected(request_metadata.topic, "is protected: its records stay")

    def _refuse_protected(self, topic: str, why: str) -> None:
        if self._protected is not None and self._protected.fullmatch(topic) is not None:
            raise PolicyViolationException(f"Topic '{topic}' {why}.")


def _compiled(configs: Mapping[str, str], setting: str) -> re.Pattern[str] | None:
    text = configs.get(PREFIX + setting, "").strip()
    if not text:
        return None
    try:
        return re.compile(text)
    except re.error as wrong:
        raise ValueError(f"{PREFIX}{setting}={text} is no regular expression: {wrong}") from None
