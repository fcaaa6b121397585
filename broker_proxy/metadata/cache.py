"""A broker's metadata cache, updated only by the controller's UpdateMetadata.

The cache rejects updates with an older controller epoch. A full image may arrive in several parts;
it becomes visible with its last part. A change that arrives between two parts is visible at once:
it is also applied to the earlier image. Encoded responses are cached until the next update: with
10,000 partitions, it takes a hundred times longer to encode a response than to find it here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode
from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataRequest
from cluster_model.records import PartitionState, Replicas
from cluster_model.update_metadata import LEADER_DURING_DELETE
from envelope.messages import MetadataUpdate

_VERSION: Final = 8
# The highest number of cached responses. It is enough for every version on every listener and for
# the topics that clients poll. There is a limit because clients choose the topic names.
_RESPONSES_MAX: Final = 1_000
NO_CONTROLLER: Final = -1


@dataclass(frozen=True, slots=True)
class CachedEndpoint:
    """The address of a live broker's listener."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class CachedBroker:
    """A live broker."""

    broker_id: int
    rack: str | None
    endpoints: Mapping[str, CachedEndpoint]


class CachedPartition(NamedTuple):
    """One partition. Equal replica lists of one update share one tuple."""

    leader: int
    leader_epoch: int
    replicas: Replicas
    isr: Replicas
    offline_replicas: Replicas
    partition_epoch: int
    controller_epoch: int


@dataclass(slots=True)
class CachedTopic:
    """A topic. `partitions` has each partition that has had a leader, by number."""

    name: str
    topic_id: bytes
    partitions: dict[int, CachedPartition]


@dataclass(slots=True)
class _Content:
    topics: dict[str, CachedTopic] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)
    brokers: dict[int, CachedBroker] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)


class MetadataCache:
    """One broker's image of the cluster. Used from the event loop only."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._content = _Content()
        self._arriving: _Content | None = None
        self._responses: dict[Any, bytes] = {}  # replaced when the metadata changes
        self._epoch_seen = 0  # the highest, including that of an incomplete image
        self.controller_id = NO_CONTROLLER
        # Whether the last update came from a KRaft controller. It has no commits, so no zxids.
        self.controller_is_kraft = False
        self.controller_epoch = 0
        self.zxid = 0
        # The topics that the last update changed; None after a full image of our controllers. A
        # KRaft controller names the replicas that it does not know in another request.
        self.changed: frozenset[str] | None = None

    def apply(self, update: MetadataUpdate) -> bool:
        """Apply an update; return False for one from an older controller.

        See docs/kafka/election-and-epoch.md#checks-at-the-receiving-broker.
        """
        if not self.controller_epoch_seen(update.controller_epoch):
            return False
        message = update.message
        if message is None:
            data = update.update_metadata  # of the controller: without a limit of elements
            message = decode(ApiKey.UPDATE_METADATA, "request", _VERSION, data, 0, "shipped")
        if update.starts_full_image:
            self._arriving = _Content()
        target = self._arriving if self._arriving is not None else self._content
        _merge(target, message)
        changed = frozenset(state.topic_name for state in message.topic_states)
        if update.complete:
            if self._arriving is None:
                self.changed = changed
            elif message.is_kraft_controller:
                self.changed = _differing(self._content, target)
            else:
                self.changed = None
            self._content, self._arriving = target, None
            self.controller_epoch = update.controller_epoch
            self.controller_id = update.controller_id
            self.controller_is_kraft = message.is_kraft_controller
            self.zxid = update.zxid
        elif update.between_parts:  # The change is visible, but the image keeps its zxid.
            self.changed = changed
            if target is not self._content:
                _merge(self._content, message)
        else:
            return True
        self._responses = {}
        self._on_change()
        return True

    def controller_epoch_seen(self, epoch: int) -> bool:
        """Return whether a request with this controller epoch is not from an earlier controller."""
        if epoch > self._epoch_seen:
            self._epoch_seen = epoch
            self._arriving = None  # The rest of an older controller's image will not arrive.
        return epoch == self._epoch_seen

    @property
    def topics(self) -> Mapping[str, CachedTopic]:
        """Every topic by name."""
        return self._content.topics

    @property
    def unreadable(self) -> Container[str]:
        """Topics of which the controller knows nothing. They may be missing in `topics`."""
        return self._content.unreadable

    @property
    def brokers(self) -> Mapping[int, CachedBroker]:
        """Every live broker by id."""
        return self._content.brokers

    def has_topic(self, name: str) -> bool:
        """True when at least one partition of the topic is known."""
        return name in self._content.topics

    def partition_states(self, topic_id: bytes) -> dict[int, PartitionState]:
        """Return the known states of a topic's partitions, by number.

        A partition that has several replicas but only one ISR member is omitted: it may be
        recovering from an unclean election, which UpdateMetadata does not show.
        """
        topic = self._content.topics.get(self._content.names.get(topic_id, ""))
        if topic is None:
            return {}
        return {
            number: PartitionState(
                partition.leader,
                partition.leader_epoch,
                partition.isr,
                partition.controller_epoch,
                partition.partition_epoch,
            )
            for number, partition in topic.partitions.items()
            if len(partition.isr) > 1 or len(partition.replicas) == 1
        }

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id."""
        return self._content.names.get(topic_id)

    def controller_moved(self) -> None:
        """Drop the cached responses, which may name the previous controller."""
        self._responses = {}

    async def cached_response(self, key: Any, encode: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the response cached under `key`; build it with `encode` if there is none.

        A response is not kept if the metadata changed while it was built.
        """
        responses = self._responses
        response = responses.get(key)
        if response is None:
            response = await encode()
            if len(responses) >= _RESPONSES_MAX:
                responses.clear()
            responses[key] = response
        return response


def _merge(content: _Content, message: UpdateMetadataRequest) -> None:
    content.brokers = {
        broker.id: CachedBroker(
            broker.id,
            broker.rack,
            {e.listener: CachedEndpoint(e.host, e.port) for e in broker.endpoints},
        )
        for broker in message.live_brokers
    }
    lists: dict[Replicas, Replicas] = {}
    for state in message.topic_states:
        name = state.topic_name
        if not state.partition_states:
            content.unreadable.add(name)
            continue
        content.unreadable.discard(name)
        topic = content.topics.get(name)
        if topic is None or topic.topic_id != state.topic_id:
            if topic is not None:
                content.names.pop(topic.topic_id, None)
            topic = CachedTopic(name, state.topic_id, {})
        for partition in state.partition_states:
            if partition.leader == LEADER_DURING_DELETE:
                topic.partitions.pop(partition.partition_index, None)
            else:
                topic.partitions[partition.partition_index] = CachedPartition(
                    partition.leader,
                    partition.leader_epoch,
                    _shared(lists, partition.replicas),
                    _shared(lists, partition.isr),
                    _shared(lists, partition.offline_replicas),
                    partition.zk_version,
                    partition.controller_epoch,
                )
        if topic.partitions:
            content.topics[name] = topic
            content.names[topic.topic_id] = name
        elif content.topics.pop(name, None) is not None:
            content.names.pop(state.topic_id, None)


def _differing(before: _Content, after: _Content) -> frozenset[str]:
    """Return the topics that are not the same in both."""
    names = before.topics.keys() | after.topics.keys()
    return frozenset(n for n in names if before.topics.get(n) != after.topics.get(n))


def _shared(lists: dict[Replicas, Replicas], brokers: Sequence[int]) -> Replicas:
    """Return one tuple for all equal lists. Few lists occur: a cluster has few brokers."""
    key = tuple(brokers)
    return lists.setdefault(key, key)


class KnownTopicIds:
    """The ids of the topics in the last metadata, to notice deletions that no update names.

    A full image does not say which topics it lacks, and one update may delete a topic and create it
    again.
    """

    def __init__(self) -> None:
        self._ids: dict[str, bytes] = {}

    def deleted(
        self,
        topics: Mapping[str, CachedTopic],
        changed: Iterable[str] | None,
        unreadable: Container[str] = (),
    ) -> set[str]:
        """Return the names of the topics of the last call that are gone or have another id now.

        `changed` has the names that an update may have changed; None: any topic may have changed.
        """
        names = self._ids.keys() | topics.keys() if changed is None else changed
        gone = set()
        for name in names:
            known_id, topic = self._ids.get(name), topics.get(name)
            if topic is None and name in unreadable:
                continue
            # A topic of an old Kafka has no id (empty or zero) until the controller gives it one.
            if known_id is not None and (
                topic is None or (any(known_id) and topic.topic_id != known_id)
            ):
                gone.add(name)
            if topic is None:
                self._ids.pop(name, None)
            else:
                self._ids[name] = topic.topic_id
        return gone
