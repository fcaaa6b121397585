"""What the single writer may rely on: written, refused whole, or unknown. There is no fourth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class ControllerMovedError(Exception):
    """Another controller holds a newer epoch. Definite: nothing of this batch was written."""


class UnknownOutcomeError(Exception):
    """The session is gone with a batch in flight. Not definite: the next controller knows."""


class ContentConflictError(Exception):
    """ZooKeeper held something else than the image said. Definite: nothing was written.

    `index` counts the effects alone (0 is the first operation after fence and counter); `code` is
    ZooKeeper's error code.
    """

    def __init__(self, index: int, code: int) -> None:
        super().__init__(f"operation {index} failed with ZooKeeper's error {code}")
        self.index = index
        self.code = code


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of office: our epoch, and the version of /controller_epoch when we took it."""

    epoch: int
    zk_version: int
    zxid: int

    def __post_init__(self) -> None:
        # ZooKeeper reads -1 as "any version", which would switch the fence off.
        assert self.zk_version >= 0, self.zk_version


class Committed(NamedTuple):
    """A multi that was applied: its number in the commit counter, and its zxid."""

    number: int
    zxid: int


class Mutant(Enum):
    """Seeded bugs of the test build, handed to the composition root; production passes none."""

    FENCE_OFF = "fence_off"
    """Neither the epoch nor the commit counter is checked."""
    RETRY_ACROSS_SESSIONS = "retry_across_sessions"
    """A lost session is replaced, and the multi sent again: the zombie of KAFKA-6082."""
    ANSWER_BEFORE_APPLIED = "answer_before_applied"
    """No answer waits for other brokers, whatever `bridgehead.metadata.blocking` says."""
    HONOUR_CLIENT_BYPASS = "honour_client_bypass"
    """A client that sets the flag of internal topics passes the policy by."""
    SKIP_POLICY_ON_RETRY = "skip_policy_on_retry"
    """An Envelope that is sent again is not shown to the policies."""
    WRITES_PAST_THE_BRIDGE = "writes_past_the_bridge"
    """A broker that should forward goes on writing to ZooKeeper itself."""
    STALE_ACL_CACHE = "stale_acl_cache"
    """A broker keeps the ACLs that it read first."""
    ALLOW_BEFORE_DENY = "allow_before_deny"
    """What an ACL allows, no other ACL denies."""
    DROP_PRINCIPAL = "drop_principal"
    """A forwarded request is decided for the broker that sent it."""
    SWAP_PRINCIPALS = "swap_principals"
    """A forwarded request is decided for whoever asked before."""
    FILL_IN_DEFAULT = "fill_in_default"
    """A request is encoded anew on its way, with a timeout of the controller's own."""
    BROKER_HOST = "broker_host"
    """A forwarded request is decided for the host of the broker that sent it."""
