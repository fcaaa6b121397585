"""Every metric: the name we expose, the name the KIP or Kafka gives it, and what it means.

KIP-590's draft names five (§Monitoring Metrics); Kafka never shipped them. They are kept
literally in a column of their own, beside their Prometheus spelling.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """How a number behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    QUANTILES = "quantiles"


class Metric(NamedTuple):
    """One row. `labels` name what it is broken down by."""

    name: str
    original: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


class Dialect(Enum):
    """Which of the two spellings that dashboards assume Kafka's own counters get.

    `CONFLUENT`: as in the jmx-monitoring-stacks, `…requestspersec`. `STRIMZI`: as in jmx_exporter's
    own examples, `…requests_total`. What the KIP names, and gauges, are spelt the same in both.
    """

    CONFLUENT = "confluent"
    STRIMZI = "strimzi"
    BOTH = "both"


def exposed_names(metric: Metric, dialect: Dialect) -> tuple[str, ...]:
    """Return the names under which a scrape finds a metric."""
    domain, _, rest = metric.original.partition(":type=")
    if metric.kind is not Kind.COUNTER:
        return (metric.name,)
    if not rest.endswith("PerSec"):
        return (f"{metric.name.removesuffix('_total')}_total",)
    base = "_".join((domain.replace(".", "_"), *rest.split(",name="))).lower()
    confluent, strimzi = base, f"{base.removesuffix('persec')}_total"
    chosen = {
        Dialect.CONFLUENT: (confluent,),
        Dialect.STRIMZI: (strimzi,),
        Dialect.BOTH: (confluent, strimzi),
    }
    return chosen[dialect]


CLIENTS_FORWARDING: Final = Metric(
    "num_client_forwarding_to_controller_count",
    "num-client-forwarding-to-controller-count",
    Kind.GAUGE,
    "Client connections with a forwarded request pending now",
)
CLIENTS_FORWARDING_RATE: Final = Metric(
    "num_client_forwarding_to_controller_rate",
    "num-client-forwarding-to-controller-rate",
    Kind.GAUGE,
    "Client connections that began to wait for a forwarded request, per second",
)
MESSAGES_REDIRECTED: Final = Metric(
    "num_messages_redirected_count",
    "num-messages-redirected-count",
    Kind.COUNTER,
    "Requests that went out in Envelopes since start; a resend is not counted again",
)
MESSAGES_REDIRECTED_RATE: Final = Metric(
    "num_messages_redirected_rate",
    "num-messages-redirected-rate",
    Kind.GAUGE,
    "Requests that went out in Envelopes, per second",
)
AUTHORIZATION_FAILED: Final = Metric(
    "request_forwarding_to_controller_authorization_fail_count",
    "request-forwarding-to-controller-authorization-fail-count",
    Kind.COUNTER,
    "Envelopes answered CLUSTER_AUTHORIZATION_FAILED by this controller",
)
ENVELOPES_REFUSED: Final = Metric(
    "bridgehead_envelopes_refused_total",
    "bridgehead.controller:type=Envelopes,name=Refused",
    Kind.COUNTER,
    "Envelopes refused because of who sent them or what was in them",
)
CHANNELS_REFUSED: Final = Metric(
    "bridgehead_broker_channels_refused_total",
    "bridgehead.controller:type=BrokerChannels,name=Refused",
    Kind.COUNTER,
    "Streams whose certificate was not that of the broker that they said they were",
)
ACTIVE_CONTROLLER: Final = Metric(
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
    Kind.GAUGE,
    "1 while this node is the controller",
)
NOT_CONTROLLER: Final = Metric(
    "not_controller_answers_count",
    "",
    Kind.COUNTER,
    "Requests that this broker answered NOT_CONTROLLER",
)
FORWARDING_FAILURES: Final = Metric(
    "forwarding_failures_count",
    "",
    Kind.COUNTER,
    "Forwarded requests that ended without the controller's answer: the client was told "
    "REQUEST_TIMED_OUT or UNKNOWN_SERVER_ERROR by this broker, or its connection was closed",
)
FORWARDING_QUEUE: Final = Metric(
    "kafka_server_forwardingmanager_queuelength",
    "kafka.server:type=ForwardingManager,name=QueueLength",
    Kind.GAUGE,
    "Requests on their way to the controller or waiting for one",
)
FORWARDING_QUEUE_TIME: Final = Metric(
    "kafka_server_forwardingmanager_queuetimems",
    "kafka.server:type=ForwardingManager,name=QueueTimeMs",
    Kind.QUANTILES,
    "Milliseconds from a request's arrival to its first Envelope",
    ("quantile",),
)
FORWARDING_REMOTE_TIME: Final = Metric(
    "kafka_server_forwardingmanager_remotetimems",
    "kafka.server:type=ForwardingManager,name=RemoteTimeMs",
    Kind.QUANTILES,
    "Milliseconds from the first Envelope of a request to its answer",
    ("quantile",),
)
REQUESTS: Final = Metric(
    "kafka_network_requestmetrics_requests_count",
    "kafka.network:type=RequestMetrics,name=RequestsPerSec",
    Kind.COUNTER,
    "Requests answered, by API and version",
    ("request", "version"),
)
REQUEST_TIME: Final = Metric(
    "kafka_network_requestmetrics_totaltimems",
    "kafka.network:type=RequestMetrics,name=TotalTimeMs",
    Kind.QUANTILES,
    "Milliseconds from a request's arrival to its answer",
    ("request", "quantile"),
)
CONNECTIONS: Final = Metric(
    "kafka_server_socket_server_connection_count",
    "kafka.server:type=socket-server-metrics,name=connection-count",
    Kind.GAUGE,
    "Clients connected now",
)
CLIENT_SOFTWARE: Final = Metric(
    "kafka_server_socket_server_connections",
    "kafka.server:type=socket-server-metrics,clientSoftwareName=,clientSoftwareVersion=,listener=",
    Kind.GAUGE,
    "Clients connected now, by the software that they say they are (KIP-511); unknown where they "
    "said nothing, other beyond a hundred sorts",
    ("client_software_name", "client_software_version", "listener"),
)
BROKER_ACCEPT_RATE: Final = Metric(
    "kafka_server_socket_server_broker_connection_accept_rate",
    "kafka.server:type=socket-server-metrics,name=broker-connection-accept-rate",
    Kind.GAUGE,
    "New connections per second, those of the protected listener between brokers aside",
)
LISTENER_ACCEPT_RATE: Final = Metric(
    "kafka_server_socket_server_connection_accept_rate",
    "kafka.server:type=socket-server-metrics,listener=,name=connection-accept-rate",
    Kind.GAUGE,
    "New connections per second of a listener",
    ("listener",),
)
ACCEPT_THROTTLE_TIME: Final = Metric(
    "kafka_server_socket_server_connection_accept_throttle_time",
    "kafka.server:type=socket-server-metrics,listener=,name=connection-accept-throttle-time",
    Kind.GAUGE,
    "Milliseconds that new connections waited on average, of those that had to "
    "(max.connection.creation.rate)",
    ("listener",),
)
IP_ACCEPT_THROTTLE_TIME: Final = Metric(
    "kafka_server_socket_server_ip_connection_accept_throttle_time",
    "kafka.server:type=socket-server-metrics,listener=,name=ip-connection-accept-throttle-time",
    Kind.GAUGE,
    "Milliseconds that connections were kept on average before they were closed, of those that "
    "came too soon (connection_creation_rate)",
    ("listener",),
)
UNAUTHENTICATED_CONNECTIONS: Final = Metric(
    "unauthenticated_connection_count",
    "",
    Kind.GAUGE,
    "Clients connected now that have not proved yet who they are",
)
LOGINS: Final = Metric(
    "kafka_server_socket_server_successful_authentication_total",
    "kafka.server:type=socket-server-metrics,name=successful-authentication-total",
    Kind.COUNTER,
    "Clients that proved who they are, over TLS or SASL",
)
FAILED_LOGINS: Final = Metric(
    "kafka_server_socket_server_failed_authentication_total",
    "kafka.server:type=socket-server-metrics,name=failed-authentication-total",
    Kind.COUNTER,
    "Clients that did not: a TLS handshake or a SASL login that failed or was not finished",
)
RENEWED_LOGINS: Final = Metric(
    "kafka_server_socket_server_successful_reauthentication_total",
    "kafka.server:type=socket-server-metrics,name=successful-reauthentication-total",
    Kind.COUNTER,
    "Logins renewed on their connection",
)
FAILED_RENEWALS: Final = Metric(
    "kafka_server_socket_server_failed_reauthentication_total",
    "kafka.server:type=socket-server-metrics,name=failed-reauthentication-total",
    Kind.COUNTER,
    "Logins that were to be renewed, in vain",
)
EXPIRED_SESSIONS: Final = Metric(
    "kafka_server_socket_server_expired_connections_killed_count",
    "kafka.server:type=socket-server-metrics,name=expired-connections-killed-count",
    Kind.COUNTER,
    "Connections closed because their login had ended and was not renewed",
)
ZOOKEEPER_CONNECTED: Final = Metric(
    "kafka_server_sessionexpirelistener_connected",
    "kafka.server:type=SessionExpireListener,name=SessionState",
    Kind.GAUGE,
    "1 while the broker's ZooKeeper session is connected",
)
ZOOKEEPER_LATENCY: Final = Metric(
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
    Kind.QUANTILES,
    "Milliseconds from a request to ZooKeeper to its answer, in all sessions of this node",
    ("quantile",),
)
EVENT_QUEUE: Final = Metric(
    "kafka_controller_controllereventmanager_eventqueuesize",
    "kafka.controller:type=ControllerEventManager,name=EventQueueSize",
    Kind.GAUGE,
    "Requests waiting for this controller's decision",
)

METRICS: Final = (
    CLIENTS_FORWARDING,
    CLIENTS_FORWARDING_RATE,
    MESSAGES_REDIRECTED,
    MESSAGES_REDIRECTED_RATE,
    AUTHORIZATION_FAILED,
    ENVELOPES_REFUSED,
    CHANNELS_REFUSED,
    ACTIVE_CONTROLLER,
    NOT_CONTROLLER,
    FORWARDING_FAILURES,
    FORWARDING_QUEUE,
    FORWARDING_QUEUE_TIME,
    FORWARDING_REMOTE_TIME,
    REQUESTS,
    REQUEST_TIME,
    CONNECTIONS,
    CLIENT_SOFTWARE,
    BROKER_ACCEPT_RATE,
    LISTENER_ACCEPT_RATE,
    ACCEPT_THROTTLE_TIME,
    IP_ACCEPT_THROTTLE_TIME,
    UNAUTHENTICATED_CONNECTIONS,
    LOGINS,
    FAILED_LOGINS,
    RENEWED_LOGINS,
    FAILED_RENEWALS,
    EXPIRED_SESSIONS,
    ZOOKEEPER_CONNECTED,
    ZOOKEEPER_LATENCY,
    EVENT_QUEUE,
)
