"""Broker configs about ZooKeeper, broker identity, the controller and the KRaft quorum.

One row each: name, type, default as text (None: null), where it can be changed at run time, a
short documentation, and what its values must satisfy. Order: that of Kafka's own definition.
"""

from __future__ import annotations

from typing import Final

from cluster_model.broker_configs.keys import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    READ_ONLY,
    STRING,
    row,
)
from cluster_model.config_types import OneOf, at_least

QUORUM: Final = (
    row(
        "zookeeper.connect",
        STRING,
        None,
        READ_ONLY,
        "ZooKeeper servers as host:port, comma separated, with an optional chroot.",
    ),
    row(
        "zookeeper.session.timeout.ms",
        INT,
        "18000",
        READ_ONLY,
        "Silence after which ZooKeeper ends the session.",
    ),
    row(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        READ_ONLY,
        "Longest wait for the first connection; the session timeout when unset.",
    ),
    row("zookeeper.set.acl", BOOLEAN, "false", READ_ONLY, "Write znodes with ACLs."),
    row(
        "zookeeper.max.in.flight.requests",
        INT,
        "10",
        READ_ONLY,
        "Unanswered requests to ZooKeeper before the client waits.",
        at_least(1),
    ),
    row("zookeeper.ssl.client.enable", BOOLEAN, "false", READ_ONLY, "TLS towards ZooKeeper."),
    row(
        "zookeeper.clientCnxnSocket",
        STRING,
        None,
        READ_ONLY,
        "Java class of ZooKeeper's client socket.",
    ),
    row(
        "zookeeper.ssl.keystore.location",
        STRING,
        None,
        READ_ONLY,
        "Key store for TLS towards ZooKeeper.",
    ),
    row(
        "zookeeper.ssl.keystore.password", PASSWORD, None, READ_ONLY, "Password of that key store."
    ),
    row("zookeeper.ssl.keystore.type", STRING, None, READ_ONLY, "Format of that key store."),
    row(
        "zookeeper.ssl.truststore.location",
        STRING,
        None,
        READ_ONLY,
        "Trust store for TLS towards ZooKeeper.",
    ),
    row(
        "zookeeper.ssl.truststore.password",
        PASSWORD,
        None,
        READ_ONLY,
        "Password of that trust store.",
    ),
    row("zookeeper.ssl.truststore.type", STRING, None, READ_ONLY, "Format of that trust store."),
    row("zookeeper.ssl.protocol", STRING, "TLSv1.2", READ_ONLY, "TLS protocol towards ZooKeeper."),
    row(
        "zookeeper.ssl.enabled.protocols", LIST, None, READ_ONLY, "TLS versions towards ZooKeeper."
    ),
    row("zookeeper.ssl.cipher.suites", LIST, None, READ_ONLY, "TLS ciphers towards ZooKeeper."),
    row(
        "zookeeper.ssl.endpoint.identification.algorithm",
        STRING,
        "HTTPS",
        READ_ONLY,
        "Host name check of ZooKeeper's certificate.",
    ),
    row(
        "zookeeper.ssl.crl.enable",
        BOOLEAN,
        "false",
        READ_ONLY,
        "Check revocation lists for ZooKeeper's certificate.",
    ),
    row(
        "zookeeper.ssl.ocsp.enable",
        BOOLEAN,
        "false",
        READ_ONLY,
        "Ask OCSP about ZooKeeper's certificate.",
    ),
    row(
        "broker.id.generation.enable",
        BOOLEAN,
        "true",
        READ_ONLY,
        "Draw a broker id from ZooKeeper when none is set.",
    ),
    row(
        "reserved.broker.max.id",
        INT,
        "1000",
        READ_ONLY,
        "Highest id that may be set by hand.",
        at_least(0),
    ),
    row("broker.id", INT, "-1", READ_ONLY, "This broker's number; -1 asks for a drawn one."),
    row(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        "20971520",
        READ_ONLY,
        "KRaft: log bytes between snapshots.",
        at_least(1),
    ),
    row(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        "3600000",
        READ_ONLY,
        "KRaft: time between snapshots.",
        at_least(0),
    ),
    row(
        "process.roles",
        LIST,
        "",
        READ_ONLY,
        "KRaft roles; empty is ZooKeeper mode.",
        OneOf(
            (
                "broker",
                "controller",
            )
        ),
    ),
    row(
        "node.id", INT, "-1", READ_ONLY, "Number of this node; follows broker.id in ZooKeeper mode."
    ),
    row(
        "initial.broker.registration.timeout.ms",
        INT,
        "60000",
        READ_ONLY,
        "KRaft: patience at first registration.",
    ),
    row("broker.heartbeat.interval.ms", INT, "2000", READ_ONLY, "KRaft: pause between heartbeats."),
    row(
        "broker.session.timeout.ms",
        INT,
        "9000",
        READ_ONLY,
        "KRaft: silence before a broker is fenced.",
    ),
    row(
        "controller.listener.names", STRING, None, READ_ONLY, "KRaft: listeners of the controllers."
    ),
    row("metadata.log.dir", STRING, None, READ_ONLY, "KRaft: place of the metadata log."),
    row(
        "metadata.log.segment.bytes",
        INT,
        "1073741824",
        READ_ONLY,
        "KRaft: segment size of the metadata log.",
        at_least(12),
    ),
    row(
        "metadata.log.segment.ms",
        LONG,
        "604800000",
        READ_ONLY,
        "KRaft: segment age of the metadata log.",
    ),
    row(
        "metadata.max.retention.bytes",
        LONG,
        "104857600",
        READ_ONLY,
        "KRaft: size of metadata log kept.",
    ),
    row(
        "metadata.max.retention.ms",
        LONG,
        "604800000",
        READ_ONLY,
        "KRaft: age of metadata log kept.",
    ),
    row(
        "metadata.max.idle.interval.ms",
        INT,
        "500",
        READ_ONLY,
        "KRaft: pause between no-op records.",
        at_least(0),
    ),
    row("zookeeper.metadata.migration.enable", BOOLEAN, "false", READ_ONLY, "Migrate to KRaft."),
    row(
        "eligible.leader.replicas.enable",
        BOOLEAN,
        "false",
        READ_ONLY,
        "KRaft: track eligible leader replicas.",
    ),
    row(
        "controller.socket.timeout.ms",
        INT,
        "30000",
        READ_ONLY,
        "Patience of the controller towards brokers.",
    ),
    row("controller.quorum.voters", LIST, "", READ_ONLY, "KRaft voters as id@host:port."),
    row(
        "controller.quorum.bootstrap.servers",
        LIST,
        "",
        READ_ONLY,
        "KRaft controllers to ask first.",
    ),
    row(
        "controller.quorum.election.timeout.ms",
        INT,
        "1000",
        READ_ONLY,
        "KRaft: wait before a new election.",
    ),
    row(
        "controller.quorum.fetch.timeout.ms",
        INT,
        "2000",
        READ_ONLY,
        "KRaft: silence before an election.",
    ),
    row(
        "controller.quorum.election.backoff.max.ms",
        INT,
        "1000",
        READ_ONLY,
        "KRaft: longest pause between elections.",
    ),
    row(
        "controller.quorum.append.linger.ms",
        INT,
        "25",
        READ_ONLY,
        "KRaft: wait of the leader for a fuller batch.",
    ),
    row(
        "controller.quorum.request.timeout.ms",
        INT,
        "2000",
        READ_ONLY,
        "KRaft: patience of a quorum request.",
    ),
    row("controller.quorum.retry.backoff.ms", INT, "20", READ_ONLY, "KRaft: pause before a retry."),
    row(
        "controller.quota.window.num",
        INT,
        "11",
        READ_ONLY,
        "Samples in a controller mutation quota window.",
        at_least(1),
    ),
    row(
        "controller.quota.window.size.seconds",
        INT,
        "1",
        READ_ONLY,
        "Length of one mutation quota sample.",
        at_least(1),
    ),
)
