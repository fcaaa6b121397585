"""This broker's ACLs, for DescribeAcls and for its own authorization."""

from __future__ import annotations

from collections.abc import Callable

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls.bindings import NO_ACLS, AclSet, Entries
from zookeeper_client.acl_reading import StoredAcls


class LearnedAcls:
    """Stores the ACLs that AclFollower reads.

    `seen` is called for each pattern that was read or has disappeared, with the pattern's entries
    and its znode's version.
    """

    def __init__(self, seen: Callable[[ResourcePattern, Entries, int | None], None]) -> None:
        self.acls: AclSet = NO_ACLS
        self.as_of: int | None = None
        self._seen = seen

    def acls_read(self, stored: StoredAcls) -> None:
        """Replace all ACLs."""
        gone = [pattern for pattern, _ in self.acls if pattern not in stored.versions]
        self.acls = stored.acls
        for pattern in gone:
            self._seen(pattern, (), None)
        for pattern, version in stored.versions.items():
            self._seen(pattern, stored.acls.entries(pattern), version)

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """Replace the ACLs of one pattern."""
        self.acls = self.acls.with_entries(pattern, entries)
        self._seen(pattern, entries, version)

    def acls_are_of(self, zxid: int | None) -> None:
        """Record that these are the ACLs at `zxid`; None if they were read at different zxids."""
        self.as_of = zxid
