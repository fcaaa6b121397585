"""Broker configs about replication, leadership and the talk between brokers.

One row each: name, type, default as text (None: null), where it can be changed at run time, a
short documentation, and what its values must satisfy. Order: that of Kafka's own definition.
"""

from __future__ import annotations

from typing import Final

from cluster_model.broker_configs.keys import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LONG,
    READ_ONLY,
    STRING,
    row,
)
from cluster_model.config_types import OneOf, at_least, metadata_version

REPLICATION: Final = (
    row(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        READ_ONLY,
        "Threads that move replicas between directories.",
    ),
    row(
        "controlled.shutdown.max.retries",
        INT,
        "3",
        READ_ONLY,
        "Attempts to hand over leaderships before stopping.",
    ),
    row(
        "controlled.shutdown.retry.backoff.ms",
        LONG,
        "5000",
        READ_ONLY,
        "Pause between those attempts.",
    ),
    row(
        "controlled.shutdown.enable",
        BOOLEAN,
        "true",
        READ_ONLY,
        "Hand over leaderships before stopping.",
    ),
    row("default.replication.factor", INT, "1", READ_ONLY, "Replicas of topics that do not say."),
    row(
        "replica.lag.time.max.ms", LONG, "30000", READ_ONLY, "Lag before a follower leaves the ISR."
    ),
    row("replica.socket.timeout.ms", INT, "30000", READ_ONLY, "Patience of a follower's fetch."),
    row(
        "replica.socket.receive.buffer.bytes",
        INT,
        "65536",
        READ_ONLY,
        "Receive buffer of a follower.",
    ),
    row(
        "replica.fetch.max.bytes",
        INT,
        "1048576",
        READ_ONLY,
        "Bytes per partition a follower asks for.",
        at_least(0),
    ),
    row("replica.fetch.wait.max.ms", INT, "500", READ_ONLY, "Wait of a follower's empty fetch."),
    row(
        "replica.fetch.backoff.ms",
        INT,
        "1000",
        READ_ONLY,
        "Pause of a follower after an error.",
        at_least(0),
    ),
    row("replica.fetch.min.bytes", INT, "1", READ_ONLY, "Least a follower's fetch answers with."),
    row(
        "replica.fetch.response.max.bytes",
        INT,
        "10485760",
        READ_ONLY,
        "Cap on a follower's fetch answer.",
        at_least(0),
    ),
    row("num.replica.fetchers", INT, "1", CLUSTER_WIDE, "Fetching threads per source broker."),
    row(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        "5000",
        READ_ONLY,
        "Pause between writes of high watermarks.",
    ),
    row(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        "true",
        READ_ONLY,
        "Give leadership back to preferred replicas.",
    ),
    row(
        "leader.imbalance.per.broker.percentage",
        INT,
        "10",
        READ_ONLY,
        "Imbalance that sets off a rebalance.",
    ),
    row(
        "leader.imbalance.check.interval.seconds",
        LONG,
        "300",
        READ_ONLY,
        "Pause between imbalance checks.",
        at_least(1),
    ),
    row(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        CLUSTER_WIDE,
        "A replica out of sync may lead.",
    ),
    row(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        READ_ONLY,
        "Protocol between brokers.",
        OneOf(
            (
                "PLAINTEXT",
                "SSL",
                "SASL_PLAINTEXT",
                "SASL_SSL",
            )
        ),
    ),
    row(
        "inter.broker.protocol.version",
        STRING,
        "3.9-IV0",
        READ_ONLY,
        "Version spoken between brokers.",
        metadata_version,
    ),
    row("inter.broker.listener.name", STRING, None, READ_ONLY, "Listener between brokers."),
    row(
        "replica.selector.class", STRING, None, READ_ONLY, "Choice of the replica a consumer reads."
    ),
)
