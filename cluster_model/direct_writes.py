"""What a broker below the bridge release writes to ZooKeeper itself. KIP-590 §Motivation.

Configs, ACLs, quotas and delegation tokens: until then any broker wrote them. Topics, partitions
and SCRAM credentials were the controller's before, too.
"""

from __future__ import annotations

from typing import Final

# CreateAcls and DeleteAcls; AlterConfigs and IncrementalAlterConfigs; CreateDelegationToken,
# RenewDelegationToken and ExpireDelegationToken; and AlterClientQuotas.
ACL_WRITES: Final = frozenset({30, 31})
CONFIG_WRITES: Final = frozenset({33, 44})
TOKEN_WRITES: Final = frozenset({38, 39, 40})
WRITTEN_BY_BROKERS: Final = ACL_WRITES | CONFIG_WRITES | TOKEN_WRITES | {49}
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
