"""Logs in a temporary folder."""

from __future__ import annotations

from pathlib import Path

from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.configs.topic_configs import TopicDefaults
from data_plane.log.log_directories import LogDirectories
from data_plane.records.batch import NewRecord, encode_batch
from data_plane.settings import TopicSettings

NOW = 1_700_000_000_000
DEFAULTS = TopicDefaults.of(EffectiveBrokerConfig.of(BrokerConfig.from_properties({})))
TOPIC_ID = bytes(range(16))


def directories(folder: Path, **configs: object) -> LogDirectories:
    """Return loaded log directories. All topics have these `configs`, named with `_` for a dot."""
    overrides = {name.replace("_", "."): str(value) for name, value in configs.items()}
    settings = TopicSettings.of(overrides, DEFAULTS)
    result = LogDirectories([str(folder)], lambda _topic: settings)
    result.load()
    return result


def batch(
    *values: bytes, timestamp: int = NOW, producer: tuple[int, int, int] = (-1, -1, -1)
) -> bytes:
    """Return a batch as a producer sends it; `producer` is id, epoch and first sequence."""
    producer_id, epoch, sequence = producer
    return encode_batch(
        [NewRecord(timestamp, b"key", value) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
