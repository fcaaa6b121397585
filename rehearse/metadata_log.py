"""Reads KRaft's metadata log: `__cluster_metadata-0` in a controller's log directory.

The controller may be running. Records between the begin and the end of a transaction take effect
at its end; the records of an aborted or unfinished one never do. A reader begins at the newest
snapshot, because older segments may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from bridgehead.kafka_wire.acl_codes import AclOperation, AclPermissionType, ResourceType
from bridgehead.kafka_wire.codes import ExtensibleCode
from bridgehead.kafka_wire.errors import ApiError
from bridgehead.kafka_wire.generate import DECODE_ERRORS, Decoder, Generator
from bridgehead.kafka_wire.primitives import WireError, decode_varint
from cluster_model.znodes.layout import DEFAULT_ENTITY, encode_uuid
from data_plane.records.batch import decode_batches
from rehearse import metadata
from rehearse.metadata import Item
from rehearse.metadata_records import LAYOUTS, UNCHANGED, MigrationState, RecordType

FOLDER: Final = "__cluster_metadata-0"
_FRAME_VERSION: Final = 1
_CONFIG_TYPES: Final = {2: "topic", 4: "broker"}
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_PATTERNS: Final = {3: "literal", 4: "prefixed"}
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SEGMENT: Final = re.compile(r"(\d{20})\.log")


class MetadataLogError(Exception):
    """A metadata log cannot be read. The text is one sentence."""


class LogRecord(NamedTuple):
    """One record. `content` is None for a type that is not decoded."""

    offset: int
    epoch: int
    type: int
    content: Any


@cache
def _decoder(type: RecordType, version: int) -> Decoder:
    return Generator(version, flexible=True).decoder(LAYOUTS[type])


def records_of(data: bytes, source: str) -> Iterator[LogRecord]:
    """Yield the records of a segment or snapshot. Raft's own control records are left out.

    Raises:
        MetadataLogError: the data is malformed. A batch at the end that is not yet complete is
            left out.
    """
    try:
        for header, records in decode_batches(data):
            if header.is_control:
                continue
            for record in records:
                kind, content = _decode(record.value or b"")
                yield LogRecord(record.offset, header.leader_epoch, kind, content)
    except (ApiError, WireError, *DECODE_ERRORS) as error:
        raise MetadataLogError(f"{source} is not a metadata log: {error}.") from error


def _decode(value: bytes) -> tuple[int, Any]:
    frame, at = decode_varint(value, 0)
    kind, at = decode_varint(value, at)
    version, at = decode_varint(value, at)
    if frame != _FRAME_VERSION:
        raise WireError(f"a record of frame version {frame}")
    if kind not in LAYOUTS:
        return kind, None
    content, _ = _decoder(RecordType(kind), version)(value, at, len(value))
    return kind, content


class Metadata:
    """The metadata after some records."""

    def __init__(self) -> None:
        self.state: MigrationState | None = None
        self.offset = -1
        """The offset of the last record."""
        self.epoch = 0
        """The highest epoch of a record, which is the epoch of the last controller."""
        self.features: dict[str, int] = {}
        self._transaction: list[LogRecord] | None = None
        self._topics: dict[bytes, str] = {}
        self._partitions: dict[bytes, dict[int, Any]] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._quotas: dict[tuple[frozenset[tuple[str, str | None]], str], float] = {}
        self._credentials: dict[tuple[str, int], Any] = {}
        self._acls: dict[bytes, Any] = {}
        self._tokens: dict[str, Any] = {}
        self._next_producer_id: int | None = None

    def apply(self, records: Iterable[LogRecord]) -> None:
        """Apply records, in the order of the log."""
        for record in records:
            self.offset, self.epoch = record.offset, max(self.epoch, record.epoch)
            if record.type == RecordType.BEGIN_TRANSACTION:
                self._transaction = []
            elif record.type == RecordType.ABORT_TRANSACTION:
                self._transaction = None
            elif record.type == RecordType.END_TRANSACTION:
                for earlier in self._transaction or ():
                    self._replay(earlier.type, earlier.content)
                self._transaction = None
            elif self._transaction is not None:
                self._transaction.append(record)
            else:
                self._replay(record.type, record.content)

    def _replay(self, type: int, content: Any) -> None:
        match type:
            case RecordType.TOPIC:
                self._topics[content.topic_id] = content.name
                self._partitions.setdefault(content.topic_id, {})
            case RecordType.REMOVE_TOPIC:
                name = self._topics.pop(content.topic_id, None)
                self._partitions.pop(content.topic_id, None)
                if name is not None:
                    self._configs.pop((2, name), None)
            case RecordType.PARTITION:
                partitions = self._partitions.setdefault(content.topic_id, {})
                partitions[content.partition_id] = content
            case RecordType.PARTITION_CHANGE:
                self._change_partition(content)
            case RecordType.CONFIG:
                configs = self._configs.setdefault(
                    (content.resource_type, content.resource_name), {}
                )
                configs.pop(content.name, None)
                if content.value is not None:
                    configs[content.name] = content.value
            case RecordType.CLIENT_QUOTA:
                entity = frozenset((part.entity_type, part.entity_name) for part in content.entity)
                self._quotas.pop((entity, content.key), None)
                if not content.remove:
                    self._quotas[entity, content.key] = content.value
            case RecordType.FEATURE_LEVEL:
                self.features[content.name] = content.feature_level
            case RecordType.ZK_MIGRATION_STATE:
                self.state = MigrationState(content.zk_migration_state)
            case RecordType.PRODUCER_IDS:
                self._next_producer_id = content.next_producer_id
            case _:
                self._replay_security(type, content)

    def _replay_security(self, type: int, content: Any) -> None:
        match type:
            case RecordType.USER_SCRAM_CREDENTIAL:
                self._credentials[content.name, content.mechanism] = content
            case RecordType.REMOVE_USER_SCRAM_CREDENTIAL:
                self._credentials.pop((content.name, content.mechanism), None)
            case RecordType.ACCESS_CONTROL_ENTRY:
                self._acls[content.id] = content
            case RecordType.REMOVE_ACCESS_CONTROL_ENTRY:
                self._acls.pop(content.id, None)
            case RecordType.DELEGATION_TOKEN:
                self._tokens[content.token_id] = content
            case RecordType.REMOVE_DELEGATION_TOKEN:
                self._tokens.pop(content.token_id, None)

    def _change_partition(self, change: Any) -> None:
        partition = self._partitions.get(change.topic_id, {}).get(change.partition_id)
        if partition is None:
            return
        if change.leader != UNCHANGED:
            partition.leader = change.leader
            partition.leader_epoch += 1
        for field in ("isr", "replicas", "adding_replicas", "removing_replicas"):
            if getattr(change, field) is not None:
                setattr(partition, field, getattr(change, field))
        partition.partition_epoch += 1

    def out_of_sync(self, topics: Collection[str]) -> dict[str, list[int]]:
        """Return the replicas of topics that are not in sync, by partition, such as `orders-0`."""
        return {
            f"{name}-{index}": missing
            for topic_id, name in self._topics.items()
            if name in topics
            for index, partition in self._partitions[topic_id].items()
            if (missing := sorted(set(partition.replicas) - set(partition.isr)))
        }

    def items(self) -> dict[Item, str]:
        """Return the items, as `rehearse.metadata.items_of_znodes` does for ZooKeeper."""
        return dict(self._items())

    def _items(self) -> Iterator[tuple[Item, str]]:
        for topic_id, name in self._topics.items():
            yield metadata.topic(name, encode_uuid(topic_id))
            for index, partition in self._partitions[topic_id].items():
                yield metadata.partition(
                    name,
                    index,
                    partition.replicas,
                    partition.adding_replicas,
                    partition.removing_replicas,
                )
                numbers = (partition.leader, partition.leader_epoch, partition.partition_epoch)
                yield metadata.leadership(name, index, partition.isr, numbers)
        for (resource_type, entity), configs in self._configs.items():
            kind = _CONFIG_TYPES.get(resource_type, f"resource type {resource_type}")
            for name, value in configs.items():
                yield metadata.config(kind, entity or DEFAULT_ENTITY, name, value)
        for (entities, name), limit in self._quotas.items():
            yield metadata.quota(entities, name, limit)
        yield from self._security_items()
        if self._next_producer_id is not None:
            yield metadata.producer_ids(self._next_producer_id)

    def _security_items(self) -> Iterator[tuple[Item, str]]:
        for (user, mechanism), credential in self._credentials.items():
            keys = (credential.salt, credential.stored_key, credential.server_key)
            name = _MECHANISMS.get(mechanism, f"mechanism {mechanism}")
            yield metadata.scram(user, name, keys, credential.iterations)
        for acl in self._acls.values():
            yield metadata.acl(
                _znode_name(ResourceType, acl.resource_type),
                acl.resource_name,
                _PATTERNS.get(acl.pattern_type, f"pattern {acl.pattern_type}"),
                (
                    acl.principal,
                    acl.host,
                    _znode_name(AclOperation, acl.operation),
                    _znode_name(AclPermissionType, acl.permission_type),
                ),
            )
        for token in self._tokens.values():
            times_ms = (token.issue_timestamp, token.max_timestamp, token.expiration_timestamp)
            yield metadata.token(
                token.token_id, token.owner, token.requester, token.renewers, times_ms
            )


class MetadataLog:
    """A controller's metadata log, which may be growing."""

    def __init__(self, log_dir: Path) -> None:
        """`log_dir` is the controller's `log.dirs`."""
        self._folder = log_dir / FOLDER

    def read(self, *, until: MigrationState | None = None) -> Metadata:
        """Return the metadata now; with `until`, when the log first has this migration state.

        Raises:
            MetadataLogError: the log is malformed, or there is none.
        """
        result = Metadata()
        for record in self.records():
            result.apply([record])
            if until is not None and result.state is until:
                break
        return result

    def records(self) -> Iterator[LogRecord]:
        """Yield the newest snapshot's records and those after it. Raises MetadataLogError."""
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError as error:
            raise MetadataLogError(f"{self._folder} cannot be read: {error.strerror}.") from error
        snapshots = [match for name in names if (match := _SNAPSHOT.fullmatch(name))]
        begin = 0
        if snapshots:
            begin = int(snapshots[-1][1])
            yield from self._read(snapshots[-1][0])
        for name in names:
            if _SEGMENT.fullmatch(name):
                yield from (record for record in self._read(name) if record.offset >= begin)

    def _read(self, name: str) -> Iterator[LogRecord]:
        path = self._folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise MetadataLogError(f"{path} cannot be read: {error.strerror}.") from error
        return records_of(data, str(path))


def _znode_name(codes: type[ExtensibleCode], code: int) -> str:
    """Return a code's name as in znodes, such as `DescribeConfigs`."""
    return "".join(part.capitalize() for part in codes(code).name.split("_"))
