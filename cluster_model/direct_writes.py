"""The APIs that a broker below the bridge release executes itself (KIP-590 §Motivation).

They write configs, ACLs, quotas and delegation tokens. A client that alters topics, partitions or
SCRAM credentials was always sent to the controller. Topics that Metadata and FindCoordinator create
automatically are direct writes as well (`broker_proxy/forwarding/auto_topics.py`).
"""

from __future__ import annotations

from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS

ACL_WRITES: Final = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})
CONFIG_WRITES: Final = frozenset({ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})
TOKEN_WRITES: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
# KIP-590 gives exactly these APIs a new version, which brokers do not forward. Before KIP-590, the
# broker that received such a request wrote to ZooKeeper itself.
WRITTEN_BY_BROKERS: Final = frozenset(
    key for key, spec in API_SPECS.items() if spec.forwarded_below is not None
)
DIRECT_PARENT: Final = "/bridgehead/direct"


class DirectWriterZnode:
    """/bridgehead/direct/<broker>-<session>: ephemeral; has the outcomes of the last multi.

    It is created when the session opens. Each multi of the session sets it, so its version counts
    the multis, and a multi without a reply can be resent safely. In ZooKeeper's transaction log,
    these outcomes identify the request of each write.
    """

    @staticmethod
    def path(broker_id: int, session: str) -> str:
        """Return the path for a session; `session` is hexadecimal."""
        return f"{DIRECT_PARENT}/{broker_id}-{session}"
