"""Who may do what with a znode: `zookeeper.set.acl`, Kafka's rules and one more (design 5.1).

Kafka's are: whoever created a znode may do everything with it, everybody may read it unless it is
sensitive. Here a node has two credentials: the controller session writes with one, the broker
session has another, which may read what is sensitive and register, and could write nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final, NamedTuple

_READ, _CREATE, _ALL = 1, 4, 31
# By plain prefix, as in Kafka.
SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
REGISTRIES: Final = ("/brokers/ids", "/bridgehead/nodes")


class ZnodeAcl(NamedTuple):
    """One entry of a znode's access list, in ZooKeeper's own terms."""

    permissions: int
    scheme: str
    id: str


OPEN: Final = (ZnodeAcl(_ALL, "world", "anyone"),)
_CREATOR: Final = ZnodeAcl(_ALL, "auth", "")  # ZooKeeper puts the session's own identities there
_EVERYBODY_READS: Final = ZnodeAcl(_READ, "world", "anyone")


@dataclass(frozen=True, slots=True)
class Credential:
    """A user and a password for ZooKeeper's `digest` scheme. Shows no password in its repr."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Credential:
        """Read `user:password`. Raises ValueError, whose text does not show it."""
        user, colon, password = text.partition(":")
        if not (user and colon and password):
            raise ValueError("is not of the form user:password")
        return cls(user, password)

    @property
    def text(self) -> str:
        """Return `user:password`, for ZooKeeper alone."""
        return f"{self.user}:{self.password}"

    @property
    def digest_id(self) -> str:
        """Return the identity that ZooKeeper makes of it, as it stands in access lists."""
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).digest()
        return f"{self.user}:{base64.b64encode(digest).decode()}"


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """As whom and how a session comes, and what the znodes that it creates allow."""

    credential: Credential | None = None
    broker: Credential | None = None  # whose rights come beside Kafka's; None: znodes are open
    tls: SSLContext | None = None  # how the session travels; None: in plain text

    def acl_of(self, path: str) -> tuple[ZnodeAcl, ...]:
        """Return the access list of a new znode; `path` is without the chroot."""
        if self.broker is None or path == "/consumers":
            return OPEN
        brokers = self.broker.digest_id
        if path.startswith(SENSITIVE):
            return (_CREATOR, ZnodeAcl(_READ, "digest", brokers))
        if path in REGISTRIES:
            return (_CREATOR, _EVERYBODY_READS, ZnodeAcl(_CREATE, "digest", brokers))
        return (_CREATOR, _EVERYBODY_READS)


OPEN_ACCESS: Final = ZooKeeperAccess()
