"""Kafka's rules about ACLs, written once more: what A1 compares decisions with.

Knows ACLs only from ZooKeeper's log: `/kafka-acl/<Type>/<name>` for literal patterns and
`/kafka-acl-extended/prefixed/<Type>/<prefix>`. A denial wins over any permission; without an ACL on
the resource nobody is allowed, unless the run says otherwise; super users always are.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chaos.history import History

LITERAL: Final = "/kafka-acl/"
PREFIXED: Final = "/kafka-acl-extended/prefixed/"
# Permission for the first of these is implied by permission for any of the others.
IMPLIED: Final = {
    "Describe": ("Read", "Write", "Delete", "Alter"),
    "DescribeConfigs": ("AlterConfigs",),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who wants to do what to what; names as the znodes spell them."""

    principal: str
    host: str
    operation: str
    resource_type: str
    name: str


class AclHistory:
    """Every ACL znode's contents over time."""

    def __init__(self, history: History) -> None:
        self._run = history.run
        self._states: dict[str, list[tuple[int, Sequence[Any]]]] = defaultdict(list)
        for path, line in history.evidence.first.items():
            if path.startswith((LITERAL, PREFIXED)):
                self._states[path].append((0, _acls(line.data)))
        for commit in history.applied:
            for operation in commit.operations:
                if not operation.path.startswith((LITERAL, PREFIXED)):
                    continue
                if operation.kind in ("create", "set"):
                    self._states[operation.path].append((commit.zxid, _acls(operation.data)))
                elif operation.kind == "delete":
                    self._states[operation.path].append((commit.zxid, ()))

    def allows(self, asked: Asked, zxid: int) -> bool:
        """Tell whether it was allowed as of a transaction."""
        if asked.principal in (self._run.super_users or ()):
            return True
        acls = list(self._matching(asked, zxid))
        if not acls:
            return self._run.allow_if_no_acl
        if any(_speaks_of(acl, asked, "Deny", (asked.operation,)) for acl in acls):
            return False
        granted_by = (asked.operation, *IMPLIED.get(asked.operation, ()))
        return any(_speaks_of(acl, asked, "Allow", granted_by) for acl in acls)

    def _matching(self, asked: Asked, zxid: int) -> Iterator[Any]:
        for name in {asked.name, "*"}:
            yield from self._as_of(f"{LITERAL}{asked.resource_type}/{name}", zxid)
        parent = f"{PREFIXED}{asked.resource_type}/"
        for length in range(1, len(asked.name) + 1):
            yield from self._as_of(parent + asked.name[:length], zxid)

    def _as_of(self, path: str, zxid: int) -> Sequence[Any]:
        states = self._states.get(path, [])
        at = bisect_right([since for since, _ in states], zxid) - 1
        return states[at][1] if at >= 0 else ()


def _acls(data: str | None) -> Sequence[Any]:
    try:
        found = json.loads(data or "{}")["acls"]
    except (KeyError, TypeError, ValueError):
        return ()
    return found if isinstance(found, list) else ()


def _speaks_of(acl: Any, asked: Asked, permission: str, operations: Sequence[str]) -> bool:
    return (
        str(acl.get("permissionType")).lower() == permission.lower()
        and acl.get("principal") in (asked.principal, "User:*")
        and acl.get("host") in (asked.host, "*")
        and str(acl.get("operation")).lower() in {each.lower() for each in (*operations, "All")}
    )
