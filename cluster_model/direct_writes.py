"""What a broker below the bridge release writes to ZooKeeper itself. KIP-590 §Motivation.

Configs, ACLs, quotas and delegation tokens: until then any broker wrote them. Topics, partitions
and SCRAM credentials were the controller's before, too.
"""

from __future__ import annotations

from typing import Final

# CreateAcls, DeleteAcls, AlterConfigs, CreateDelegationToken, RenewDelegationToken,
# ExpireDelegationToken, IncrementalAlterConfigs, AlterClientQuotas.
WRITTEN_BY_BROKERS: Final = frozenset({30, 31, 33, 38, 39, 40, 44, 49})
# Made when a writer's session opens; each of its multis sets it.
DIRECT_PARENT: Final = "/bridgehead/direct"


class DirectWriterZnode:
    """/bridgehead/direct/<broker>-<session>: ephemeral, the outcomes of that broker's last multi.

    Its version counts the multis of the session, so that one whose answer was lost can be sent
    again; and ZooKeeper's log tells through it for which request something was written.
    """

    @staticmethod
    def path(broker_id: int, session: str) -> str:
        """Return the path of one session's znode; `session` is hexadecimal."""
        return f"{DIRECT_PARENT}/{broker_id}-{session}"
