"""The metadata image: an immutable snapshot of the cluster metadata.

A decision reads one image and makes records. Once they are committed, `replay` applies them, which
gives the next image. Maps are hash array mapped tries (`immutables.Map`): copying the metadata of
100,000 partitions for each small write would be too slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, assert_never

from immutables import Map

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls.bindings import NO_ACLS, AclSet, Entries
from cluster_model.configs.steps import (
    ConfigStep,
    StepKind,
    config_steps,
    user_and_client,
    user_of_clients,
)
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.mutation_rates import mutation_rate
from cluster_model.records import (
    FIRST_PRODUCER_IDS,
    NO_STATE,
    PRODUCER_IDS_PER_BLOCK,
    AclRecord,
    AssignmentRecord,
    ConfigRecord,
    ConfigResource,
    DeletionMarkerRecord,
    DeletionMarkerRemovalRecord,
    PartitionRecord,
    PartitionState,
    ProducerIdBlockRecord,
    ProducerIds,
    Record,
    Replicas,
    TokenRecord,
    TokenRemovalRecord,
    TopicIdRecord,
    TopicRecord,
    TopicRemovalRecord,
)
from cluster_model.topic_names import collision_key

Key = TypeVar("Key")
Value = TypeVar("Value")
# Kafka's numbers of the security protocols.
PROTOCOL_CODES: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One advertised listener of a broker."""

    listener_name: str
    security_protocol: str  # a key of PROTOCOL_CODES
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A live broker, from /brokers/ids/<id>. `epoch` is the czxid of that znode."""

    broker_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    incarnation: str = ""  # from /bridgehead/nodes/<id>; empty without that znode


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with the replicas and the state of each partition, indexed by partition."""

    name: str
    topic_id: bytes
    assignment: tuple[Replicas, ...]
    states: tuple[PartitionState, ...]
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)
    # Kafka can leave `partitions` or `partitions/<p>` behind without a state znode.
    has_partitions_znode: bool = False
    bare_partition_znodes: frozenset[int] = frozenset()


def index_collisions(names: Iterable[str]) -> Map[str, frozenset[str]]:
    """Return `MetadataImage.colliding` for these topic names."""
    index: dict[str, frozenset[str]] = {}
    for name in names:
        key = collision_key(name)
        index[key] = index.get(key, frozenset()) | {name}
    return Map(index)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster metadata at one zxid."""

    zxid: int = 0
    controller_epoch: int = 0
    brokers: Map[int, BrokerRegistration] = field(default_factory=Map)
    topics: Map[str, Topic] = field(default_factory=Map)
    topic_names: Map[bytes, str] = field(default_factory=Map)  # by topic id
    # Topics by the name they have in metrics, where `.` becomes `_`
    # (docs/kafka/topics.md#colliding-names).
    colliding: Map[str, frozenset[str]] = field(default_factory=Map)
    configs: Map[ConfigResource, Mapping[str, str]] = field(default_factory=Map)
    # The clients below each user that has a `clients` znode; names as stored.
    user_clients: Map[str, frozenset[str]] = field(default_factory=Map)
    deletions: frozenset[str] = frozenset()  # topics marked for deletion
    # Topics whose znodes are invalid. They are not in `topics`, but brokers must keep their logs.
    unreadable: frozenset[str] = frozenset()
    # The mutation quotas in `configs`. Every creation and deletion of a topic needs them.
    mutation_rates: Map[ConfigResource, float] = field(default_factory=Map)
    acls: AclSet = NO_ACLS
    tokens: Map[str, DelegationToken] = field(default_factory=Map)  # by token id
    acl_versions: Map[ResourcePattern, int] = field(default_factory=Map)  # znode versions
    producer_ids: ProducerIds | None = FIRST_PRODUCER_IDS  # None: its znode is missing or invalid
    # The known znode versions of `configs`, to detect writes by brokers below the bridge release.
    config_versions: Map[ConfigResource, int] = field(default_factory=Map)

    def config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """Return the stored overrides of a config entity; empty if there are none."""
        return self.configs.get(ConfigResource(entity_type, entity_name), {})

    def with_topics(self, topics: Mapping[str, Topic]) -> MetadataImage:
        """Return the image with topics that another process created. It has none of them yet."""
        names = self.topic_names.update({topic.topic_id: name for name, topic in topics.items()})
        colliding = self.colliding.mutate()
        for name in topics:
            key = collision_key(name)
            colliding[key] = colliding.get(key, frozenset()) | {name}
        return replace(
            self,
            topics=self.topics.update(topics),
            topic_names=names,
            colliding=colliding.finish(),
        )

    def with_acl(
        self, pattern: ResourcePattern, entries: Entries, version: int | None
    ) -> MetadataImage:
        """Return the image with the entries that another process wrote for a pattern.

        `version` is the version of the znode; None if there is no znode.
        """
        acls = self.acls.with_entries(pattern, entries)
        return replace(self, acls=acls, acl_versions=_with(self.acl_versions, pattern, version))

    def with_config(
        self,
        resource: ConfigResource,
        configs: Mapping[str, str] | None,
        version: int,
    ) -> MetadataImage:
        """Return the image with configs that another process wrote.

        `configs` is None if there is no znode.
        """
        exists = configs is not None
        rate = mutation_rate(resource, configs or {})
        return replace(
            self,
            configs=_with(self.configs, resource, configs),
            config_versions=_with(self.config_versions, resource, version if exists else None),
            mutation_rates=_with(self.mutation_rates, resource, rate),
        )

    def with_user_clients(self, user: str, clients: frozenset[str] | None) -> MetadataImage:
        """Return the image with a user's clients.

        `clients` is None if the user has no `clients` znode.
        """
        return replace(self, user_clients=_with(self.user_clients, user, clients))

    def with_token(self, token_id: str, token: DelegationToken | None) -> MetadataImage:
        """Return the image with a token that another process wrote.

        `token` is None if there is no znode.
        """
        return replace(self, tokens=_with(self.tokens, token_id, token))

    def replay(self, records: Iterable[Record]) -> MetadataImage:
        """Return the image after `records`, applied in order."""
        return _Replay(self).apply(records)


def _with(entries: Map[Key, Value], key: Key, value: Value | None) -> Map[Key, Value]:
    """Return the map with this value; None removes the key."""
    if value is not None:
        return entries.set(key, value)
    return entries.delete(key) if key in entries else entries


class _Replay:
    """Applies records to mutable copies of the maps of an image."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics = image.topics.mutate()
        self._names = image.topic_names.mutate()
        self._colliding = image.colliding.mutate()
        self._configs = image.configs.mutate()
        self._config_versions = image.config_versions.mutate()
        self._user_clients = image.user_clients.mutate()
        self._mutation_rates = image.mutation_rates.mutate()
        self._deletions = set(image.deletions)
        self._tokens = image.tokens
        self._producer_ids = image.producer_ids
        self._acls = image.acls
        self._acl_versions = image.acl_versions.mutate()
        # Records of one topic are adjacent, so the topic's tuple of states is rebuilt once.
        self._states: dict[str, list[PartitionState]] = {}

    def apply(self, records: Iterable[Record]) -> MetadataImage:
        for record in records:
            match record:
                case PartitionRecord(name, partition, state):
                    if name not in self._states:
                        self._states[name] = list(self._topics[name].states)
                    self._states[name][partition] = state
                case TopicRecord():
                    self._create(record)
                case AssignmentRecord():
                    self._assign(record)
                case TopicIdRecord(name, topic_id):
                    self._flush(name)
                    self._topics[name] = replace(self._topics[name], topic_id=topic_id)
                    self._names[topic_id] = name
                case ConfigRecord():
                    self._configure(record)
                case DeletionMarkerRecord(name):
                    self._deletions.add(name)
                case DeletionMarkerRemovalRecord(name):
                    self._deletions.discard(name)
                case TopicRemovalRecord(name):
                    self._remove(name)
                case TokenRecord(token):
                    self._tokens = self._tokens.set(token.token_id, token)
                case TokenRemovalRecord(token_id):
                    self._tokens = self._tokens.delete(token_id)
                case ProducerIdBlockRecord(_, first_id):
                    version = self._producer_ids.version if self._producer_ids else 0
                    next_id = first_id + PRODUCER_IDS_PER_BLOCK
                    self._producer_ids = ProducerIds(next_id, version + 1)
                case AclRecord(pattern, entries):
                    self._acls = self._acls.with_entries(pattern, entries)
                    version = self._acl_versions.pop(pattern, -1)
                    if entries:
                        self._acl_versions[pattern] = version + 1
                case _:
                    assert_never(record)
        for name in list(self._states):
            self._flush(name)
        return replace(
            self._image,
            topics=self._topics.finish(),
            topic_names=self._names.finish(),
            colliding=self._colliding.finish(),
            configs=self._configs.finish(),
            config_versions=self._config_versions.finish(),
            user_clients=self._user_clients.finish(),
            deletions=frozenset(self._deletions),
            tokens=self._tokens,
            producer_ids=self._producer_ids,
            acls=self._acls,
            acl_versions=self._acl_versions.finish(),
            mutation_rates=self._mutation_rates.finish(),
        )

    def _flush(self, name: str) -> None:
        changed = self._states.pop(name, None)
        if changed is None:
            return
        topic = self._topics[name]
        # dataclasses.replace would take most of the time of a replay.
        self._topics[name] = Topic(
            name,
            topic.topic_id,
            topic.assignment,
            tuple(changed),
            topic.adding,
            topic.removing,
            topic.has_partitions_znode or any(state.partition_epoch >= 0 for state in changed),
            topic.bare_partition_znodes,
        )

    def _create(self, record: TopicRecord) -> None:
        name = record.name
        blank = (NO_STATE,) * len(record.assignment)
        self._topics[name] = Topic(name, record.topic_id, record.assignment, blank)
        self._names[record.topic_id] = name
        key = collision_key(name)
        self._colliding[key] = self._colliding.get(key, frozenset()) | {name}
        self._written(ConfigResource("topics", name))
        self._configs[ConfigResource("topics", name)] = record.configs

    def _assign(self, record: AssignmentRecord) -> None:
        self._flush(record.topic)
        topic = self._topics[record.topic]
        grown = (NO_STATE,) * (len(record.assignment) - len(topic.states))
        self._topics[record.topic] = replace(
            topic,
            assignment=record.assignment,
            states=topic.states + grown,
            adding=record.adding,
            removing=record.removing,
        )

    def _configure(self, record: ConfigRecord) -> None:
        steps = config_steps(record.resource, record.configs, self._configs, self._user_clients)
        for step in steps:
            parent = user_of_clients(step.resource)
            if parent is not None:
                if step.kind is StepKind.DELETE:
                    self._user_clients.pop(parent, None)
                else:
                    self._user_clients[parent] = frozenset()
            else:
                self._step(step)

    def _step(self, step: ConfigStep) -> None:
        """Apply the change of one config znode, and update the clients of its user."""
        gone = step.kind is StepKind.DELETE
        if gone:
            self._configs.pop(step.resource, None)
            self._config_versions.pop(step.resource, None)
        else:
            self._written(step.resource)
            self._configs[step.resource] = step.configs or {}
        rate = mutation_rate(step.resource, step.configs or {})
        if rate is None:
            self._mutation_rates.pop(step.resource, None)
        else:
            self._mutation_rates[step.resource] = rate
        user, client = (
            user_and_client(step.resource) if step.resource.entity_type == "users" else ("", None)
        )
        if client is not None:
            clients = self._user_clients.get(user, frozenset())
            self._user_clients[user] = clients - {client} if gone else clients | {client}

    def _written(self, resource: ConfigResource) -> None:
        """Increment the znode's known version before a write; a new znode has version 0."""
        if resource not in self._configs:
            self._config_versions[resource] = 0
        elif resource in self._config_versions:
            self._config_versions[resource] += 1

    def _remove(self, name: str) -> None:
        self._states.pop(name, None)
        gone = self._topics.pop(name)
        self._names.pop(gone.topic_id, None)
        key = collision_key(name)
        left = self._colliding.pop(key, frozenset()) - {name}
        if left:
            self._colliding[key] = left
        self._configs.pop(ConfigResource("topics", name), None)
        self._config_versions.pop(ConfigResource("topics", name), None)
        self._deletions.discard(name)
