"""Where a request goes next: the one table of what is served. KIP-590 §Proposed Changes.

What is not in this table is neither served nor advertised.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from bridgehead.kafka_wire.dialects import ALTER_ACLS, ALTER_TOPICS, LIST_ACLS
from cluster_model.direct_writes import WRITTEN_BY_BROKERS


class Route(Enum):
    """The ways out of a broker."""

    LOCAL = auto()  # answered by this broker
    FORWARD = auto()  # wrapped in an Envelope and sent to the controller
    NOT_CONTROLLER = auto()  # the client must ask the controller itself
    DIRECT = auto()  # written to ZooKeeper by this broker: it is below the bridge release


# Every version of a forwardable API is forwarded in the shipped dialect (kafka-semantics 1.2).
SHIPPED: Final[Mapping[int, Route]] = {
    2: Route.LOCAL,  # ListOffsets
    3: Route.LOCAL,  # Metadata
    9: Route.LOCAL,  # OffsetFetch
    10: Route.LOCAL,  # FindCoordinator
    15: Route.LOCAL,  # DescribeGroups
    16: Route.LOCAL,  # ListGroups
    17: Route.LOCAL,  # SaslHandshake
    18: Route.LOCAL,  # ApiVersions
    19: Route.FORWARD,  # CreateTopics
    20: Route.FORWARD,  # DeleteTopics
    21: Route.LOCAL,  # DeleteRecords
    29: Route.LOCAL,  # DescribeAcls
    30: Route.FORWARD,  # CreateAcls
    31: Route.FORWARD,  # DeleteAcls
    32: Route.LOCAL,  # DescribeConfigs
    33: Route.FORWARD,  # AlterConfigs
    34: Route.LOCAL,  # AlterReplicaLogDirs
    35: Route.LOCAL,  # DescribeLogDirs
    36: Route.LOCAL,  # SaslAuthenticate
    37: Route.FORWARD,  # CreatePartitions
    38: Route.FORWARD,  # CreateDelegationToken
    39: Route.FORWARD,  # RenewDelegationToken
    40: Route.FORWARD,  # ExpireDelegationToken
    41: Route.LOCAL,  # DescribeDelegationToken
    42: Route.LOCAL,  # DeleteGroups
    43: Route.FORWARD,  # ElectLeaders
    44: Route.FORWARD,  # IncrementalAlterConfigs
    45: Route.FORWARD,  # AlterPartitionReassignments
    46: Route.FORWARD,  # ListPartitionReassignments
    47: Route.LOCAL,  # OffsetDelete
    48: Route.LOCAL,  # DescribeClientQuotas
    49: Route.FORWARD,  # AlterClientQuotas
    50: Route.LOCAL,  # DescribeUserScramCredentials
    51: Route.FORWARD,  # AlterUserScramCredentials
    57: Route.FORWARD,  # UpdateFeatures
    58: Route.LOCAL,  # Envelope
    60: Route.LOCAL,  # DescribeCluster
    61: Route.LOCAL,  # DescribeProducers
    65: Route.LOCAL,  # DescribeTransactions
    66: Route.LOCAL,  # ListTransactions
    68: Route.LOCAL,  # ConsumerGroupHeartbeat
    69: Route.LOCAL,  # ConsumerGroupDescribe
}
# As the KIPs drafted it: the same, with KIP-4's three APIs.
DRAFTED: Final[Mapping[int, Route]] = {
    **SHIPPED,
    ALTER_TOPICS: Route.FORWARD,
    LIST_ACLS: Route.LOCAL,
    ALTER_ACLS: Route.FORWARD,
}
DIALECTS: Final[Mapping[str, Mapping[int, Route]]] = {"shipped": SHIPPED, "drafted": DRAFTED}
# KIP-590 §Protocol Bumps: below these versions a request is forwarded, from them on its client has
# to ask the controller itself. So has the client of every other API of the controller's (KIP-4).
FORWARDED_BELOW: Final[Mapping[int, int]] = {
    30: 3,  # CreateAcls
    31: 3,  # DeleteAcls
    33: 2,  # AlterConfigs
    38: 3,  # CreateDelegationToken
    39: 3,  # RenewDelegationToken
    40: 3,  # ExpireDelegationToken
    44: 2,  # IncrementalAlterConfigs
    49: 1,  # AlterClientQuotas
}


def route(
    api_key: int,
    api_version: int,
    *,
    dialect: str,
    forwarding_enabled: bool,
    broker_is_controller: bool,
    writes_itself: bool = False,
) -> Route | None:
    """Decide where one request goes; None: this broker does not serve the API.

    The controller's own broker takes the same way, in-process (design 5.6). Without forwarding
    the client has to find the controller itself, as before KIP-590; `writes_itself`: but for
    what every broker wrote then, the controller's own included.
    """
    way = DIALECTS[dialect].get(api_key)
    if writes_itself and api_key in WRITTEN_BY_BROKERS:
        return Route.DIRECT
    if way is not Route.FORWARD or broker_is_controller:
        return way
    must_ask_it = dialect == "drafted" and api_version >= FORWARDED_BELOW.get(api_key, 0)
    return Route.NOT_CONTROLLER if must_ask_it or not forwarding_enabled else way
