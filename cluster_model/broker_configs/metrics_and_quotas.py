"""Broker configs about metrics and quotas.

One row each: name, type, default as text (None: null), where it can be changed at run time, a
short documentation, and what its values must satisfy. Order: that of Kafka's own definition.
"""

from __future__ import annotations

from typing import Final

from cluster_model.broker_configs.keys import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    READ_ONLY,
    STRING,
    row,
)
from cluster_model.config_types import at_least

METRICS_AND_QUOTAS: Final = (
    row("metrics.num.samples", INT, "2", READ_ONLY, "Samples that make a rate.", at_least(1)),
    row("metrics.sample.window.ms", LONG, "30000", READ_ONLY, "Length of one sample.", at_least(1)),
    row("metric.reporters", LIST, "", CLUSTER_WIDE, "Metrics plug-ins."),
    row("metrics.recording.level", STRING, "INFO", READ_ONLY, "Least level of metrics kept."),
    row("auto.include.jmx.reporter", BOOLEAN, "true", READ_ONLY, "Report to JMX unasked."),
    row("kafka.metrics.reporters", LIST, "", READ_ONLY, "Plug-ins for the old metrics."),
    row(
        "kafka.metrics.polling.interval.secs",
        INT,
        "10",
        READ_ONLY,
        "Pause of those plug-ins.",
        at_least(1),
    ),
    row(
        "telemetry.max.bytes",
        INT,
        "1048576",
        READ_ONLY,
        "Largest metrics push of a client.",
        at_least(1),
    ),
    row("quota.window.num", INT, "11", READ_ONLY, "Samples in a client quota window.", at_least(1)),
    row(
        "replication.quota.window.num",
        INT,
        "11",
        READ_ONLY,
        "Samples in a replication quota window.",
        at_least(1),
    ),
    row(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        "11",
        READ_ONLY,
        "Samples in a directory move quota window.",
        at_least(1),
    ),
    row(
        "quota.window.size.seconds",
        INT,
        "1",
        READ_ONLY,
        "Length of one client quota sample.",
        at_least(1),
    ),
    row(
        "replication.quota.window.size.seconds",
        INT,
        "1",
        READ_ONLY,
        "Length of one replication quota sample.",
        at_least(1),
    ),
    row(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        "1",
        READ_ONLY,
        "Length of one directory move quota sample.",
        at_least(1),
    ),
    row(
        "client.quota.callback.class",
        CLASS,
        None,
        READ_ONLY,
        "Plug-in that computes client quotas.",
    ),
)
