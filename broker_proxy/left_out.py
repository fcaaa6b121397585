"""What a Kafka 3.9 with ZooKeeper lists and this broker does not, and why.

A client that sends one of these finds its connection closed, as with any API that a broker does
not have. Keys that only KRaft has are here where admin tools know them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RECORDS: Final = "there is no data plane: partitions are empty logs that nobody writes or reads"
_MEMBERSHIP: Final = "no broker keeps groups: whoever asks is told that there are none"
_TRANSACTIONS: Final = "no broker keeps transactions: whoever asks is told that there are none"
_BETWEEN_BROKERS: Final = "brokers and controller speak over a channel of their own (gRPC)"
_KRAFT: Final = "only KRaft has it; a Kafka with ZooKeeper closes the connection as well"

LEFT_OUT: Final[Mapping[int, tuple[str, str]]] = {
    0: ("Produce", _RECORDS),
    1: ("Fetch", _RECORDS),
    4: ("LeaderAndIsr", _BETWEEN_BROKERS),
    5: ("StopReplica", _BETWEEN_BROKERS),
    6: ("UpdateMetadata", _BETWEEN_BROKERS),
    7: ("ControlledShutdown", _BETWEEN_BROKERS),
    8: ("OffsetCommit", _MEMBERSHIP),
    11: ("JoinGroup", _MEMBERSHIP),
    12: ("Heartbeat", _MEMBERSHIP),
    13: ("LeaveGroup", _MEMBERSHIP),
    14: ("SyncGroup", _MEMBERSHIP),
    22: ("InitProducerId", _RECORDS),
    23: ("OffsetForLeaderEpoch", _RECORDS),
    24: ("AddPartitionsToTxn", _TRANSACTIONS),
    25: ("AddOffsetsToTxn", _TRANSACTIONS),
    26: ("EndTxn", _TRANSACTIONS),
    27: ("WriteTxnMarkers", _TRANSACTIONS),
    28: ("TxnOffsetCommit", _TRANSACTIONS),
    55: ("DescribeQuorum", _KRAFT),
    56: ("AlterPartition", _BETWEEN_BROKERS),
    64: ("UnregisterBroker", _KRAFT),
    67: ("AllocateProducerIds", _BETWEEN_BROKERS),
    74: ("ListClientMetricsResources", _KRAFT),
    75: ("DescribeTopicPartitions", _KRAFT),
}
