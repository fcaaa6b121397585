"""These are all metrics, each with its name, its original name and its meaning.

The original name is the metric's name in Kafka. There are two exceptions. The draft of KIP-590
names five metrics (§Monitoring Metrics) that Kafka never shipped; the original name of these five
is the KIP's name, with its misprint `fowarding` corrected. A metric of our own has no original
name, or one that begins with `bridgehead.`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    QUANTILES = "quantiles"


class Metric(NamedTuple):
    """One metric. `labels` are its dimensions.

    `name` is its name in the evidence; `exposed_names` returns its names on /metrics.
    """

    name: str
    original: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


class CounterSpelling(Enum):
    """The spelling of Kafka's counters `…PerSec`. A dashboard assumes one spelling.

    `CONFLUENT` is the spelling of Confluent's jmx-monitoring-stacks, `…requestspersec`. `STRIMZI`
    is the spelling of jmx_exporter's examples, `…requests_total`. All other metrics have the same
    spelling in both dialects.
    """

    CONFLUENT = "confluent"
    STRIMZI = "strimzi"
    BOTH = "both"


def exposed_names(metric: Metric, dialect: CounterSpelling) -> tuple[str, ...]:
    """Return the names under which a metric is exposed."""
    domain, _, rest = metric.original.partition(":type=")
    if metric.kind is not Kind.COUNTER:
        return (metric.name,)
    if not rest.endswith("PerSec"):
        return (f"{metric.name.removesuffix('_total')}_total",)
    base = "_".join((domain.replace(".", "_"), *rest.split(",name="))).lower()
    confluent, strimzi = base, f"{base.removesuffix('persec')}_total"
    chosen = {
        CounterSpelling.CONFLUENT: (confluent,),
        CounterSpelling.STRIMZI: (strimzi,),
        CounterSpelling.BOTH: (confluent, strimzi),
    }
    return chosen[dialect]


CLIENTS_FORWARDING: Final = Metric(
    "num_client_forwarding_to_controller_count",
    "num-client-forwarding-to-controller-count",
    Kind.GAUGE,
    "Client connections that are waiting for the response to a forwarded request",
)
CLIENTS_FORWARDING_AS_SPELLED: Final = Metric(
    "num_client_fowarding_to_controller_count",
    "num-client-fowarding-to-controller-count",
    Kind.GAUGE,
    "The same as num_client_forwarding_to_controller_count, under the name that KIP-590 prints",
)
CLIENT_REQUESTS_FORWARDED: Final = Metric(
    "bridgehead_client_requests_forwarded_total",
    "bridgehead.server:type=Forwarding,name=ClientRequests",
    Kind.COUNTER,
    "Requests of clients that this node has sent in Envelopes to another node since its start; "
    "resends and the node's own requests are not counted",
)
CLIENTS_FORWARDING_RATE: Final = Metric(
    "num_client_forwarding_to_controller_rate",
    "num-client-forwarding-to-controller-rate",
    Kind.GAUGE,
    "Client connections that began to wait for the response to a forwarded request, per second",
)
MESSAGES_REDIRECTED: Final = Metric(
    "num_messages_redirected_count",
    "num-messages-redirected-count",
    Kind.COUNTER,
    "Requests that this node has sent in Envelopes to another node since its start; resends are "
    "not counted",
)
MESSAGES_REDIRECTED_RATE: Final = Metric(
    "num_messages_redirected_rate",
    "num-messages-redirected-rate",
    Kind.GAUGE,
    "Requests that this node sends in Envelopes to another node, per second; resends are not "
    "counted",
)
AUTHORIZATION_FAILED: Final = Metric(
    "request_forwarding_to_controller_authorization_fail_count",
    "request-forwarding-to-controller-authorization-fail-count",
    Kind.COUNTER,
    "Envelopes that this node answered with CLUSTER_AUTHORIZATION_FAILED",
)
ENVELOPES_REJECTED: Final = Metric(
    "bridgehead_envelopes_rejected_total",
    "bridgehead.controller:type=Envelopes,name=Rejected",
    Kind.COUNTER,
    "Envelopes that this node rejected with an error other than NOT_CONTROLLER",
)
CHANNELS_REJECTED: Final = Metric(
    "bridgehead_broker_channels_rejected_total",
    "bridgehead.controller:type=BrokerChannels,name=Rejected",
    Kind.COUNTER,
    "Streams of brokers that this node rejected because the certificate does not match the broker "
    "id",
)
ACTIVE_CONTROLLER: Final = Metric(
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
    Kind.GAUGE,
    "1 while this node is the active controller",
)
NOT_CONTROLLER: Final = Metric(
    "not_controller_responses_count",
    "",
    Kind.COUNTER,
    "Requests that this broker answered with NOT_CONTROLLER; Envelopes are not counted",
)
FORWARDING_FAILURES: Final = Metric(
    "forwarding_failures_count",
    "",
    Kind.COUNTER,
    "Forwarded requests for which this broker got no usable response from the controller; it "
    "answered REQUEST_TIMED_OUT or UNKNOWN_SERVER_ERROR, or closed the connection",
)
FORWARDING_QUEUE: Final = Metric(
    "kafka_server_forwardingmanager_queuelength",
    "kafka.server:type=ForwardingManager,name=QueueLength",
    Kind.GAUGE,
    "Forwarded requests that are waiting for the controller's response, or for a controller",
)
FORWARDING_QUEUE_TIME: Final = Metric(
    "kafka_server_forwardingmanager_queuetimems",
    "kafka.server:type=ForwardingManager,name=QueueTimeMs",
    Kind.QUANTILES,
    "Milliseconds from the start of forwarding to the request's first Envelope to another node",
    ("quantile",),
)
FORWARDING_REMOTE_TIME: Final = Metric(
    "kafka_server_forwardingmanager_remotetimems",
    "kafka.server:type=ForwardingManager,name=RemoteTimeMs",
    Kind.QUANTILES,
    "Milliseconds from the request's first Envelope to another node to the end of forwarding",
    ("quantile",),
)
# As in Kafka, a follower's Fetch counts under this name and under `Fetch`.
FOLLOWER_FETCH: Final = "FetchFollower"
REQUESTS: Final = Metric(
    "kafka_network_requestmetrics_requests_count",
    "kafka.network:type=RequestMetrics,name=RequestsPerSec",
    Kind.COUNTER,
    "Requests that this broker has handled, by API and version; requests without a response count, "
    "too. Version -1 stands for all versions that the broker does not support. A follower's Fetch "
    "counts as Fetch and as FetchFollower",
    ("request", "version"),
)
REQUEST_TIME: Final = Metric(
    "kafka_network_requestmetrics_totaltimems",
    "kafka.network:type=RequestMetrics,name=TotalTimeMs",
    Kind.QUANTILES,
    "Milliseconds from the arrival of a request to its response",
    ("request", "quantile"),
)
CONNECTIONS: Final = Metric(
    "kafka_server_socket_server_connection_count",
    "kafka.server:type=socket-server-metrics,name=connection-count",
    Kind.GAUGE,
    "Clients that are connected",
)
CLIENT_SOFTWARE: Final = Metric(
    "kafka_server_socket_server_connections",
    "kafka.server:type=socket-server-metrics,clientSoftwareName=,clientSoftwareVersion=,listener=",
    Kind.GAUGE,
    "Clients that are connected, by client software (KIP-511). The label is `unknown` if the "
    "client sent no name. It is `other` if the name or the version is too long, or if a hundred "
    "other combinations are connected",
    ("client_software_name", "client_software_version", "listener"),
)
BROKER_ACCEPT_RATE: Final = Metric(
    "kafka_server_socket_server_broker_connection_accept_rate",
    "kafka.server:type=socket-server-metrics,name=broker-connection-accept-rate",
    Kind.GAUGE,
    "New connections per second. Connections to the inter-broker listener count only if it is the "
    "only listener",
)
LISTENER_ACCEPT_RATE: Final = Metric(
    "kafka_server_socket_server_connection_accept_rate",
    "kafka.server:type=socket-server-metrics,listener=,name=connection-accept-rate",
    Kind.GAUGE,
    "New connections to a listener per second",
    ("listener",),
)
ACCEPT_THROTTLE_TIME: Final = Metric(
    "kafka_server_socket_server_connection_accept_throttle_time",
    "kafka.server:type=socket-server-metrics,listener=,name=connection-accept-throttle-time",
    Kind.GAUGE,
    "Average milliseconds by which max.connection.creation.rate delays new connections",
    ("listener",),
)
IP_ACCEPT_THROTTLE_TIME: Final = Metric(
    "kafka_server_socket_server_ip_connection_accept_throttle_time",
    "kafka.server:type=socket-server-metrics,listener=,name=ip-connection-accept-throttle-time",
    Kind.GAUGE,
    "Average milliseconds until a connection is closed because it exceeds the "
    "connection_creation_rate of its IP address",
    ("listener",),
)
MEMORY_USED: Final = Metric(
    "kafka_network_socketserver_memorypoolused",
    "kafka.network:type=SocketServer,name=MemoryPoolUsed",
    Kind.GAUGE,
    "Bytes that the broker has received of requests that are not answered yet, on all connections",
)
MEMORY_AVAILABLE: Final = Metric(
    "kafka_network_socketserver_memorypoolavailable",
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
    Kind.GAUGE,
    "Bytes that further requests may use: the rest of queued.max.request.bytes",
)
CLOSED_FOR_MEMORY: Final = Metric(
    "connections_closed_for_memory_count",
    "",
    Kind.GAUGE,
    "Connections that the broker has closed since its start, in the middle of a request, because "
    "queued.max.request.bytes was used up",
)
UNAUTHENTICATED_CONNECTIONS: Final = Metric(
    "unauthenticated_connection_count",
    "",
    Kind.GAUGE,
    "Clients that are connected but not authenticated yet",
)
LOGINS: Final = Metric(
    "kafka_server_socket_server_successful_authentication_total",
    "kafka.server:type=socket-server-metrics,name=successful-authentication-total",
    Kind.COUNTER,
    "Successful logins over TLS or SASL",
)
FAILED_LOGINS: Final = Metric(
    "kafka_server_socket_server_failed_authentication_total",
    "kafka.server:type=socket-server-metrics,name=failed-authentication-total",
    Kind.COUNTER,
    "TLS handshakes and SASL logins that failed or did not finish",
)
RENEWED_LOGINS: Final = Metric(
    "kafka_server_socket_server_successful_reauthentication_total",
    "kafka.server:type=socket-server-metrics,name=successful-reauthentication-total",
    Kind.COUNTER,
    "Successful SASL re-authentications",
)
FAILED_RENEWALS: Final = Metric(
    "kafka_server_socket_server_failed_reauthentication_total",
    "kafka.server:type=socket-server-metrics,name=failed-reauthentication-total",
    Kind.COUNTER,
    "Failed SASL re-authentications",
)
EXPIRED_SESSIONS: Final = Metric(
    "kafka_server_socket_server_expired_connections_killed_count",
    "kafka.server:type=socket-server-metrics,name=expired-connections-killed-count",
    Kind.COUNTER,
    "Connections that the broker closed because their session expired without re-authentication",
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
    "Milliseconds from a ZooKeeper request to its response, in all sessions of this node",
    ("quantile",),
)
EVENT_QUEUE: Final = Metric(
    "kafka_controller_controllereventmanager_eventqueuesize",
    "kafka.controller:type=ControllerEventManager,name=EventQueueSize",
    Kind.GAUGE,
    "Requests that are waiting for this controller's decision",
)


def _replica_manager(name: str, kind: Kind, help: str) -> Metric:
    exposed = f"kafka_server_replicamanager_{name.lower()}"
    exposed = f"{exposed.removesuffix('persec')}_total" if kind is Kind.COUNTER else exposed
    return Metric(exposed, f"kafka.server:type=ReplicaManager,name={name}", kind, help)


# Exposed with bridgehead.data.plane=true.
PARTITIONS: Final = _replica_manager("PartitionCount", Kind.GAUGE, "Replicas on this broker")
LEADERS: Final = _replica_manager("LeaderCount", Kind.GAUGE, "Partitions that this broker leads")
UNDER_REPLICATED: Final = _replica_manager(
    "UnderReplicatedPartitions",
    Kind.GAUGE,
    "Partitions that this broker leads and whose ISR lacks a replica",
)
UNDER_MIN_ISR: Final = _replica_manager(
    "UnderMinIsrPartitionCount",
    Kind.GAUGE,
    "Partitions that this broker leads and whose ISR is smaller than min.insync.replicas",
)
AT_MIN_ISR: Final = _replica_manager(
    "AtMinIsrPartitionCount",
    Kind.GAUGE,
    "Partitions that this broker leads and whose ISR has exactly min.insync.replicas replicas",
)
ISR_EXPANDS: Final = _replica_manager(
    "IsrExpandsPerSec",
    Kind.COUNTER,
    "How often a replica joined the ISR of a partition led by this broker",
)
ISR_SHRINKS: Final = _replica_manager(
    "IsrShrinksPerSec",
    Kind.COUNTER,
    "How often replicas left the ISR of a partition led by this broker",
)
FAILED_ISR_UPDATES: Final = _replica_manager(
    "FailedIsrUpdatesPerSec", Kind.COUNTER, "ISR changes that the controller rejected"
)


def _broker_topics(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_brokertopicmetrics_{name.lower().removesuffix('persec')}_total",
        f"kafka.server:type=BrokerTopicMetrics,name={name}",
        Kind.COUNTER,
        help,
    )


MESSAGES_IN: Final = _broker_topics("MessagesInPerSec", "Records that producers appended")
BYTES_IN: Final = _broker_topics("BytesInPerSec", "Bytes that producers appended")
BYTES_OUT: Final = _broker_topics("BytesOutPerSec", "Bytes of records sent to consumers")
BYTES_REJECTED: Final = _broker_topics(
    "BytesRejectedPerSec",
    "Bytes of batches that the broker rejected because they exceed max.message.bytes or "
    "segment.bytes",
)
PRODUCE_REQUESTS: Final = _broker_topics(
    "TotalProduceRequestsPerSec",
    "Appends that producers requested; a Produce request has one append for each partition",
)
FETCH_REQUESTS: Final = _broker_topics(
    "TotalFetchRequestsPerSec", "Partitions in Fetch requests of consumers and followers"
)
FAILED_PRODUCE_REQUESTS: Final = _broker_topics(
    "FailedProduceRequestsPerSec",
    "Appends that failed because records are invalid or the ISR is too small; records that are "
    "damaged or too large are not counted",
)
RECORD_COUNTERS: Final = (
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    BYTES_REJECTED,
    PRODUCE_REQUESTS,
    FETCH_REQUESTS,
    FAILED_PRODUCE_REQUESTS,
)


def _log(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_log_log_{name.lower()}",
        f"kafka.log:type=Log,name={name}",
        Kind.GAUGE,
        help,
        ("topic", "partition"),
    )


# Exposed only for logs that have files.
LOG_SIZE: Final = _log("Size", "Bytes of a log")
LOG_START: Final = _log("LogStartOffset", "First offset of a log")
LOG_END: Final = _log("LogEndOffset", "Offset of the next record of a log")
LOG_SEGMENTS: Final = _log("NumLogSegments", "Segments of a log")


def _group_manager(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_coordinator_group_groupmetadatamanager_{name.lower()}",
        f"kafka.coordinator.group:type=GroupMetadataManager,name={name}",
        Kind.GAUGE,
        help,
    )


def _group_count(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_group_coordinator_metrics_{name.replace('-', '_')}",
        f"kafka.server:type=group-coordinator-metrics,name={name}",
        Kind.GAUGE,
        help,
    )


NUM_GROUPS: Final = _group_manager("NumGroups", "Groups that this broker coordinates")
NUM_OFFSETS: Final = _group_manager(
    "NumOffsets", "Committed offsets of groups that this broker coordinates"
)
NUM_GROUPS_PREPARING: Final = _group_manager(
    "NumGroupsPreparingRebalance", "Groups that are waiting for members to join"
)
NUM_GROUPS_COMPLETING: Final = _group_manager(
    "NumGroupsCompletingRebalance", "Groups that are waiting for their leader's assignment"
)
NUM_GROUPS_STABLE: Final = _group_manager(
    "NumGroupsStable", "Groups whose members have their assignments"
)
NUM_GROUPS_EMPTY: Final = _group_manager("NumGroupsEmpty", "Groups without members")
OFFSET_COMMITS: Final = _group_count(
    "offset-commit-count", "Offsets committed since this broker started"
)
OFFSET_EXPIRATIONS: Final = _group_count(
    "offset-expiration-count", "Offsets expired since this broker started"
)
OFFSET_DELETIONS: Final = _group_count(
    "offset-deletion-count", "Offsets deleted by clients since this broker started"
)
COMPLETED_REBALANCES: Final = _group_count(
    "group-completed-rebalance-count", "Rebalances completed since this broker started"
)

METRICS: Final = (
    CLIENTS_FORWARDING,
    CLIENTS_FORWARDING_AS_SPELLED,
    CLIENT_REQUESTS_FORWARDED,
    CLIENTS_FORWARDING_RATE,
    MESSAGES_REDIRECTED,
    MESSAGES_REDIRECTED_RATE,
    AUTHORIZATION_FAILED,
    ENVELOPES_REJECTED,
    CHANNELS_REJECTED,
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
    MEMORY_USED,
    MEMORY_AVAILABLE,
    CLOSED_FOR_MEMORY,
    UNAUTHENTICATED_CONNECTIONS,
    LOGINS,
    FAILED_LOGINS,
    RENEWED_LOGINS,
    FAILED_RENEWALS,
    EXPIRED_SESSIONS,
    ZOOKEEPER_CONNECTED,
    ZOOKEEPER_LATENCY,
    EVENT_QUEUE,
    PARTITIONS,
    LEADERS,
    UNDER_REPLICATED,
    UNDER_MIN_ISR,
    AT_MIN_ISR,
    ISR_EXPANDS,
    ISR_SHRINKS,
    FAILED_ISR_UPDATES,
    *RECORD_COUNTERS,
    LOG_SIZE,
    LOG_START,
    LOG_END,
    LOG_SEGMENTS,
    NUM_GROUPS,
    NUM_OFFSETS,
    NUM_GROUPS_PREPARING,
    NUM_GROUPS_COMPLETING,
    NUM_GROUPS_STABLE,
    NUM_GROUPS_EMPTY,
    OFFSET_COMMITS,
    OFFSET_EXPIRATIONS,
    OFFSET_DELETIONS,
    COMPLETED_REBALANCES,
)
