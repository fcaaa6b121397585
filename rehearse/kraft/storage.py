"""Formats the storage of a Kafka node in KRaft mode, as Kafka's StorageTool does, without a JVM.

The two files are `meta.properties`, which has the ids of cluster, node and directory, and
`bootstrap.checkpoint`, a snapshot whose only record is the level of `metadata.version`.
"""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Final

from bridgehead.cluster.data_directory import write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties
from bridgehead.kafka_wire.generate import Generator
from cluster_model import inter_broker_protocol
from cluster_model.inter_broker_protocol import LEVELS, level_of
from data_plane.records.batch import CONTROL_FLAG, NewRecord, encode_batch
from rehearse.metadata_records import FeatureLevelRecord, RecordType

# Below these levels Kafka's controller refuses to begin a migration, or dies.
LEVEL_MIN: Final = "3.6-IV2"
LEVEL_MAX: Final = "3.9-IV0"
_SNAPSHOT_HEADER: Final = (b"\0\0\0\3", b"\0\0" + bytes(8) + b"\0")
_SNAPSHOT_FOOTER: Final = (b"\0\0\0\4", b"\0\0\0")


def feature_level(level: str) -> int:
    """Return the feature level of `metadata.version` for a level such as `3.9` or `3.8-IV0`.

    Raises:
        ClusterError: no migration can begin at this level.
    """
    full = level_of(level)
    allowed = LEVELS[LEVELS.index(LEVEL_MIN) : LEVELS.index(LEVEL_MAX) + 1]
    if full not in allowed:
        raise ClusterError(
            f"A migration with Kafka 3.9 needs inter.broker.protocol.version 3.6 to 3.9 on every "
            f"broker, not {level}: raise it in the brokers' server.properties first."
        )
    return inter_broker_protocol.feature_level(full)


def format_storage(folder: Path, *, cluster_id: str, node_id: int, level: str) -> None:
    """Format a log directory; do nothing if it is formatted already.

    Raises:
        ClusterError: no migration can begin at this level.
    """
    meta = folder / "meta.properties"
    if meta.is_file():
        return
    number = feature_level(level)
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "bootstrap.checkpoint", bootstrap_checkpoint(number))
    properties = {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": random_uuid(),
    }
    write_private(meta, format_properties(properties).encode())


def bootstrap_checkpoint(number: int) -> bytes:
    """Return a snapshot with one record: the level of `metadata.version`."""
    record = bytearray((1, RecordType.FEATURE_LEVEL, 0))
    Generator(0, flexible=True).encoder(FeatureLevelRecord)(
        FeatureLevelRecord("metadata.version", number), record
    )
    batches = (
        (_SNAPSHOT_HEADER, CONTROL_FLAG),
        ((None, bytes(record)), 0),
        (_SNAPSHOT_FOOTER, CONTROL_FLAG),
    )
    return b"".join(
        encode_batch(
            [NewRecord(0, key, value)],
            base_offset=offset,
            leader_epoch=0,
            attributes=attributes,
        )
        for offset, ((key, value), attributes) in enumerate(batches)
    )


def random_uuid() -> str:
    """Return a random UUID as Kafka's text, without the leading `-` of an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
