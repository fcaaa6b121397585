"""Resolves the host names in a request before its decision, because a decision does no I/O.

Kafka's controller resolves names while it decides, which delays all other requests.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from typing import Final

from bridgehead.kafka_wire.messages.alter_client_quotas import AlterClientQuotasRequest
from bridgehead.slices import in_thread
from cluster_model.acls.authorization import CLUSTER_NAME, BindAuthorize
from cluster_model.acls.bindings import AclSet
from controller.apis.alter_client_quotas import host_names
from controller.requests.pending_request import PendingRequest

_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})")
# Limits for one request. Names beyond these limits are not tried and count as unresolvable.
HOSTS_MAX: Final = 50
WITHIN_S: Final = 5.0


async def resolve_hosts(
    pending: PendingRequest, bind_authorize: BindAuthorize, acls: AclSet
) -> None:
    """Set `pending.resolvable`, unless the client lacks the right to alter quotas."""
    request = pending.request
    if not isinstance(request, AlterClientQuotasRequest):
        return
    names = await in_thread(pending.is_large, host_names, request)
    if not names:
        return
    key, version, *_ = pending.header
    authorize = bind_authorize(pending.client.requester(key, version), acls)
    quiet = {"log_if_denied": False, "log_if_allowed": False}  # The decision authorizes again.
    if authorize("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME, **quiet):
        pending.resolvable = await resolvable(names)


async def resolvable(names: Iterable[str]) -> frozenset[str]:
    """Return the names that resolve to an address. HOSTS_MAX and WITHIN_S limit the attempts."""
    tried = [name for name in dict.fromkeys(names) if _HOST_NAME.fullmatch(name)][:HOSTS_MAX]
    hosts: set[str] = set()
    try:
        async with asyncio.timeout(WITHIN_S):
            for name in tried:
                if await _has_address(name):
                    hosts.add(name)
    except TimeoutError:
        pass
    return frozenset(hosts)


async def _has_address(name: str) -> bool:
    loop = asyncio.get_running_loop()
    try:
        return bool(await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):  # UnicodeError: a label is empty or too long.
        return False
