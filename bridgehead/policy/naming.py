r"""Rules for topic names, and topics protected from deletion.

    topic.management.policy.class.name=bridgehead.policy.naming.TopicNaming
    bridgehead.policy.naming.pattern=[a-z]+\.[a-z0-9-]+
    bridgehead.policy.naming.owner.prefix=true
    bridgehead.policy.naming.protected=billing\..*

The whole name of a new topic must match `pattern`. With `owner.prefix` it must begin with its
creator's name and a dot. Topics that match `protected`, and their records, cannot be deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bridgehead.policy.interfaces import PolicyViolationException
from bridgehead.policy.topic_management import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    TopicManagementPolicy,
)

PREFIX: Final = "bridgehead.policy.naming."
_SETTINGS: Final = ("pattern", "owner.prefix", "protected")


class TopicNaming(TopicManagementPolicy):
    """Checks the names of new topics, except internal ones, and protects topics from deletion."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._protected: re.Pattern[str] | None = None
        self._owner_prefix = False

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the rules; raises ValueError for unknown settings and invalid expressions."""
        for name in sorted(n for n in configs if n.startswith(PREFIX)):
            if name.removeprefix(PREFIX) not in _SETTINGS:
                raise ValueError(f"{name} is not a setting; use {', '.join(_SETTINGS)}")
        self._pattern = _compiled(configs, "pattern")
        self._protected = _compiled(configs, "protected")
        self._owner_prefix = configs.get(f"{PREFIX}owner.prefix", "").strip().lower() == "true"

    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
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
            raise PolicyViolationException(
                "A topic's name must begin with its creator's name: log in first."
            )
        if not topic.startswith(f"{principal.name}."):
            raise PolicyViolationException(
                f"Topic name '{topic}' must begin with '{principal.name}.', its creator's name."
            )

    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Accept all: names do not change."""

    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        self._check_protected(request_metadata.topic, "is protected and cannot be deleted")

    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        self._check_protected(request_metadata.topic, "is protected: its records cannot be deleted")

    def _check_protected(self, topic: str, reason: str) -> None:
        if self._protected is not None and self._protected.fullmatch(topic) is not None:
            raise PolicyViolationException(f"Topic '{topic}' {reason}.")


def _compiled(configs: Mapping[str, str], setting: str) -> re.Pattern[str] | None:
    text = configs.get(PREFIX + setting, "").strip()
    if not text:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{PREFIX}{setting}={text} is not a regular expression: {error}") from None
