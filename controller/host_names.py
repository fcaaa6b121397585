"""Host names in a request, looked up before it is decided: a decision itself looks nothing up.

Kafka's controller asks its name service while it decides, and everybody waits. Here the request
that names hosts waits alone, and not for ever.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from bridgehead.kafka_wire.messages.alter_client_quotas import AlterClientQuotasRequest
from cluster_model.acls import AclSet
from cluster_model.authorization import CLUSTER_NAME, BindAuthorize
from controller.apis.alter_client_quotas import host_names
from controller.apis.base import RequestContext

# What a name service can know; anything else is not asked for.
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})")
# A request may name very many; those beyond are taken for unknown.
HOSTS_MAX: Final = 50
WITHIN_S: Final = 5.0


async def with_hosts(
    context: RequestContext, request: Any, bind_authorize: BindAuthorize, acls: AclSet
) -> RequestContext:
    """Look up what the request names, unless its asker may alter no quotas anyway."""
    names = host_names(request) if isinstance(request, AlterClientQuotasRequest) else []
    if not names:
        return context
    may = bind_authorize(context.asker, acls)
    quiet = {"log_if_denied": False, "log_if_allowed": False}  # It is asked in earnest later.
    if not may("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME, **quiet):
        return context
    return replace(context, resolvable=await resolvable(names))


async def resolvable(names: Iterable[str]) -> frozenset[str]:
    """Return those of `names` that have an address, as far as that is known in time."""
    asked = [name for name in dict.fromkeys(names) if _HOST_NAME.fullmatch(name)][:HOSTS_MAX]
    found: set[str] = set()
    try:
        async with asyncio.timeout(WITHIN_S):
            for name in asked:
                if await _has_address(name):
                    found.add(name)
    except TimeoutError:
        pass
    return frozenset(found)


async def _has_address(name: str) -> bool:
    loop = asyncio.get_running_loop()
    try:
        return bool(await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except OSError:
        return False
