"""Kafka's ACL rules for A1 (no_unauthorized_effect), independent of the brokers' authorizer.

ACLs come only from the first dump and ZooKeeper's log: `/kafka-acl/<Type>/<name>` for literal
patterns and `/kafka-acl-extended/prefixed/<Type>/<prefix>`. DENY takes precedence over ALLOW.
Without an ACL on the resource, access is denied unless the run's configuration allows it. A1 itself
allows super users.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from judge.history import History

LITERAL: Final = "/kafka-acl/"
PREFIXED: Final = "/kafka-acl-extended/prefixed/"


@dataclass(frozen=True, slots=True)
class Access:
    """An operation of a principal on a resource; names are spelled as in the znodes."""

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

    def allows(self, access: Access, zxid: int) -> bool:
        """Return whether the ACLs at a zxid allow an access."""
        acls = list(self._matching(access, zxid))
        if not acls:
            return self._run.allow_if_no_acl
        denied = any(_matches(acl, access, "deny") for acl in acls)
        return not denied and any(_matches(acl, access, "allow") for acl in acls)

    def _matching(self, access: Access, zxid: int) -> Iterator[Any]:
        for name in {access.name, "*"}:
            yield from self._at(f"{LITERAL}{access.resource_type}/{name}", zxid)
        parent = f"{PREFIXED}{access.resource_type}/"
        for length in range(1, len(access.name) + 1):
            yield from self._at(parent + access.name[:length], zxid)

    def _at(self, path: str, zxid: int) -> Sequence[Any]:
        states = self._states.get(path, [])
        at = bisect_right([since for since, _ in states], zxid) - 1
        return states[at][1] if at >= 0 else ()


def _acls(data: str | None) -> Sequence[Any]:
    try:
        acls = json.loads(data or "{}")["acls"]
    except (KeyError, TypeError, ValueError):
        return ()
    # An entry that is not an object grants nothing.
    return [acl if isinstance(acl, dict) else {} for acl in acls] if isinstance(acls, list) else ()


def _matches(acl: Any, access: Access, permission: str) -> bool:
    return (
        str(acl.get("permissionType")).lower() == permission
        and acl.get("principal") in (access.principal, "User:*")
        and acl.get("host") in (access.host, "*")
        and str(acl.get("operation")).lower() in (access.operation.lower(), "all")
    )
