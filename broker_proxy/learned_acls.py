"""The ACLs as this broker has learned them: its answer to DescribeAcls, and what it decides on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Final

from bridgehead.authorizer import ResourcePattern
from cluster_model.acls import NO_ACLS, AclSet, Entries
from zookeeper_client.acl_reading import StoredAcls

# The name of a seeded bug: nothing is learned after the first reading.
STALE_ACL_CACHE: Final = "stale_acl_cache"


class LearnedAcls:
    """See AclListener. `seen` hears of every znode's version that was read."""

    def __init__(
        self, seen: Callable[[ResourcePattern, int | None], None], mutants: Collection[Enum] = ()
    ) -> None:
        """Among `mutants` there may be a seeded bug of this class: see STALE_ACL_CACHE."""
        self.acls: AclSet = NO_ACLS
        self.as_of: int | None = None
        self._seen = seen
        self._is_stale = any(mutant.value == STALE_ACL_CACHE for mutant in mutants)

    def acls_read(self, stored: StoredAcls) -> None:
        """Everything was read."""
        self.acls = stored.acls
        for pattern, version in stored.versions.items():
            self._seen(pattern, version)

    def acl_changed(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """One pattern was read again."""
        if not self._is_stale:
            self.acls = self.acls.with_entries(pattern, entries)
        self._seen(pattern, version)

    def acls_are_of(self, zxid: int | None) -> None:
        """What was told is as of this transaction."""
        self.as_of = zxid
