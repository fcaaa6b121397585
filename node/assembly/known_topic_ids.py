"""The ids of the topics in the last metadata, to notice deletions that no update names.

A full image does not say which topics it lacks, and one update may delete a topic and create it
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker_proxy.metadata.cache import CachedTopic


class KnownTopicIds:
    """The topics that the metadata had when `deleted` was last called."""

    def __init__(self) -> None:
        self._ids: dict[str, bytes] = {}

    def deleted(self, topics: Mapping[str, CachedTopic], changed: Iterable[str] | None) -> set[str]:
        """Return the names of known topics that are gone or have another id now.

        `changed` has the names that an update may have changed; None: any topic may have changed.
        """
        names = self._ids.keys() | topics.keys() if changed is None else changed
        gone = set()
        for name in names:
            known, topic = self._ids.get(name), topics.get(name)
            # A topic of an old Kafka has no id (empty or zero) until the controller gives it one.
            if known is not None and (topic is None or (any(known) and topic.topic_id != known)):
                gone.add(name)
            if topic is None:
                self._ids.pop(name, None)
            else:
                self._ids[name] = topic.topic_id
        return gone
