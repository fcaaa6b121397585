"""Broker configs about listeners, sockets and requests.

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
    PER_BROKER,
    READ_ONLY,
    STRING,
    row,
)
from cluster_model.config_types import at_least

NETWORK: Final = (
    row("num.io.threads", INT, "8", CLUSTER_WIDE, "Threads that work on requests.", at_least(1)),
    row("background.threads", INT, "10", CLUSTER_WIDE, "Threads for housekeeping.", at_least(1)),
    row("request.timeout.ms", INT, "30000", READ_ONLY, "Patience of this broker's own clients."),
    row(
        "socket.connection.setup.timeout.ms",
        LONG,
        "10000",
        READ_ONLY,
        "First wait for a TCP connection.",
    ),
    row(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        "30000",
        READ_ONLY,
        "Longest wait for a TCP connection.",
    ),
    row(
        "authorizer.class.name",
        STRING,
        "",
        READ_ONLY,
        "Authorizer; empty means everyone may do everything.",
    ),
    row(
        "early.start.listeners",
        STRING,
        None,
        READ_ONLY,
        "Listeners open before the authorizer is ready.",
    ),
    row("broker.rack", STRING, None, READ_ONLY, "Failure domain of this broker."),
    row("delete.topic.enable", BOOLEAN, "true", READ_ONLY, "Topics may be deleted."),
    row(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        READ_ONLY,
        "Fetch sessions kept.",
        at_least(0),
    ),
    row("fetch.max.bytes", INT, "57671680", READ_ONLY, "Cap on a fetch answer.", at_least(1024)),
    row(
        "max.request.partition.size.limit",
        INT,
        "2000",
        READ_ONLY,
        "Partitions one request may name.",
        at_least(1),
    ),
    row(
        "listeners",
        STRING,
        "PLAINTEXT://:9092",
        PER_BROKER,
        "Where this broker listens: NAME://host:port, comma separated.",
    ),
    row(
        "advertised.listeners",
        STRING,
        None,
        PER_BROKER,
        "What clients are told to connect to; listeners when unset.",
    ),
    row(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        PER_BROKER,
        "Security protocol of each listener name.",
    ),
    row(
        "control.plane.listener.name",
        STRING,
        None,
        READ_ONLY,
        "Listener for the controller's requests alone.",
    ),
    row("socket.send.buffer.bytes", INT, "102400", READ_ONLY, "Socket send buffer."),
    row("socket.receive.buffer.bytes", INT, "102400", READ_ONLY, "Socket receive buffer."),
    row(
        "socket.request.max.bytes",
        INT,
        "104857600",
        READ_ONLY,
        "Largest request frame.",
        at_least(1),
    ),
    row(
        "socket.listen.backlog.size",
        INT,
        "50",
        READ_ONLY,
        "Connections waiting to be accepted.",
        at_least(1),
    ),
    row(
        "max.connections.per.ip",
        INT,
        "2147483647",
        CLUSTER_WIDE,
        "Connections from one address.",
        at_least(0),
    ),
    row(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        CLUSTER_WIDE,
        "Exceptions to that cap, as host:count.",
    ),
    row(
        "max.connections",
        INT,
        "2147483647",
        CLUSTER_WIDE,
        "Connections of this broker, or of a listener when prefixed.",
        at_least(0),
    ),
    row(
        "max.connection.creation.rate",
        INT,
        "2147483647",
        CLUSTER_WIDE,
        "New connections per second.",
        at_least(0),
    ),
    row(
        "connections.max.idle.ms",
        LONG,
        "600000",
        READ_ONLY,
        "Idle time before a connection is closed.",
    ),
    row(
        "connection.failed.authentication.delay.ms",
        INT,
        "100",
        READ_ONLY,
        "Delay before a failed login is answered.",
        at_least(0),
    ),
    row("queued.max.requests", INT, "500", READ_ONLY, "Requests read but not begun.", at_least(1)),
    row(
        "queued.max.request.bytes", LONG, "-1", READ_ONLY, "Bytes read but not begun; -1 is no cap."
    ),
    row(
        "num.network.threads",
        INT,
        "3",
        CLUSTER_WIDE,
        "Threads that read and write sockets, per listener.",
        at_least(1),
    ),
    row(
        "fetch.purgatory.purge.interval.requests",
        INT,
        "1000",
        READ_ONLY,
        "Waiting fetches before a purge.",
    ),
    row(
        "producer.purgatory.purge.interval.requests",
        INT,
        "1000",
        READ_ONLY,
        "Waiting produces before a purge.",
    ),
    row(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        "1",
        READ_ONLY,
        "Waiting record deletions before a purge.",
    ),
)
