"""ZooKeeper ACLs of znodes, for `zookeeper.set.acl`.

As in Kafka, the creator of a znode has all permissions, and everyone can read it unless it is
sensitive. In addition, a node has two credentials. The sessions that write metadata use one: the
controller session and, below the bridge release, the direct session. The broker session uses the
other: it can read sensitive znodes and register, but write nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final, NamedTuple

_READ, _CREATE, _ALL = 1, 4, 31
# Matched as plain string prefixes, as in Kafka.
SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
REGISTRIES: Final = ("/brokers/ids", "/bridgehead/nodes")


class ZnodeAcl(NamedTuple):
    """One entry of a ZooKeeper ACL."""

    permissions: int
    scheme: str
    id: str


OPEN: Final = (ZnodeAcl(_ALL, "world", "anyone"),)
# ZooKeeper replaces this id with the identities of the session.
_CREATOR: Final = ZnodeAcl(_ALL, "auth", "")
_EVERYONE_READS: Final = ZnodeAcl(_READ, "world", "anyone")


@dataclass(frozen=True, slots=True)
class Credential:
    """A user and a password for ZooKeeper's `digest` scheme. The repr hides the password."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Credential:
        """Parse `user:password`. Raises ValueError; its message does not contain the text."""
        user, colon, password = text.partition(":")
        if not (user and colon and password):
            raise ValueError("is not of the form user:password")
        return cls(user, password)

    @property
    def text(self) -> str:
        """Return `user:password`; only for ZooKeeper."""
        return f"{self.user}:{self.password}"

    @property
    def digest_id(self) -> str:
        """Return the user's identity in ZooKeeper ACLs."""
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).digest()
        return f"{self.user}:{base64.b64encode(digest).decode()}"


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """How a session connects and authenticates, and the ACLs of the znodes it creates."""

    credential: Credential | None = None
    broker: Credential | None = None  # of the broker session; None: znodes are open
    tls: SSLContext | None = None  # None: plain text

    def acl_of(self, path: str) -> tuple[ZnodeAcl, ...]:
        """Return the ACL of a new znode; `path` excludes the chroot."""
        if self.broker is None or path == "/consumers":
            return OPEN
        brokers = self.broker.digest_id
        if path.startswith(SENSITIVE):
            return (_CREATOR, ZnodeAcl(_READ, "digest", brokers))
        if path in REGISTRIES:
            return (_CREATOR, _EVERYONE_READS, ZnodeAcl(_CREATE, "digest", brokers))
        return (_CREATOR, _EVERYONE_READS)


OPEN_ACCESS: Final = ZooKeeperAccess()
