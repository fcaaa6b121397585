"""Broker configs about transactions and producer ids.

One row each: name, type, default as text (None: null), where it can be changed at run time, a
short documentation, and what its values must satisfy. Order: that of Kafka's own definition.
"""

from __future__ import annotations

from typing import Final

from cluster_model.broker_configs.keys import BOOLEAN, CLUSTER_WIDE, INT, READ_ONLY, SHORT, row
from cluster_model.config_types import at_least

TRANSACTIONS: Final = (
    row(
        "transaction.state.log.min.isr",
        INT,
        "2",
        READ_ONLY,
        "In-sync replicas __transaction_state needs.",
        at_least(1),
    ),
    row(
        "transaction.state.log.load.buffer.size",
        INT,
        "5242880",
        READ_ONLY,
        "Batch when transactions are loaded.",
        at_least(1),
    ),
    row(
        "transaction.state.log.replication.factor",
        SHORT,
        "3",
        READ_ONLY,
        "Replicas of __transaction_state.",
        at_least(1),
    ),
    row(
        "transaction.state.log.num.partitions",
        INT,
        "50",
        READ_ONLY,
        "Partitions of __transaction_state.",
        at_least(1),
    ),
    row(
        "transaction.state.log.segment.bytes",
        INT,
        "104857600",
        READ_ONLY,
        "Segment size of __transaction_state.",
        at_least(1),
    ),
    row(
        "transaction.partition.verification.enable",
        BOOLEAN,
        "true",
        CLUSTER_WIDE,
        "Check that a partition belongs to the transaction.",
    ),
    row(
        "producer.id.expiration.ms",
        INT,
        "86400000",
        CLUSTER_WIDE,
        "Life of an idle producer id's state.",
        at_least(1),
    ),
    row(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        READ_ONLY,
        "Life of an idle transactional id.",
        at_least(1),
    ),
    row(
        "transaction.max.timeout.ms",
        INT,
        "900000",
        READ_ONLY,
        "Longest transaction a producer may ask for.",
        at_least(1),
    ),
    row(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        "10000",
        READ_ONLY,
        "Pause between searches for late transactions.",
        at_least(1),
    ),
    row(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        READ_ONLY,
        "Pause between searches for expired ids.",
        at_least(1),
    ),
)
