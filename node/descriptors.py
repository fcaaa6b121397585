"""The file descriptors of a node: who may use how many of them.

Without a division, idle clients could use up all descriptors; the node could then write neither to
ZooKeeper nor to its logs.
"""

from __future__ import annotations

import logging
import resource
from typing import Final, NamedTuple

from broker_proxy.connections.admission import WAITING_MAX
from broker_proxy.connections.server import ACCEPTED_AT_ONCE
from data_plane.log.open_files import OPEN_FILES_MAX

_log = logging.getLogger(__name__)
# The node's own: sessions with ZooKeeper, channels, logs, the cleaner's files, metrics, control.
OWN: Final = 200
# Some systems have no limit, and a program may have to look at every number up to it.
_LIMIT_MAX: Final = 1_048_576
_CLIENTS_MIN: Final = 32


class DescriptorShares(NamedTuple):
    """The most descriptors for each purpose."""

    files: int  # open segments of logs
    waiting: int  # connections of one listener that wait for admission
    clients: int  # admitted connections of all listeners


def raise_limit() -> int:
    """Raise this process's limit as far as it may; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, _LIMIT_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def descriptor_shares(limit: int, listeners: int) -> DescriptorShares:
    """Divide a limit. Rejected addresses wait, too, in a queue of their own (KIP-612)."""
    free = max(limit - OWN - ACCEPTED_AT_ONCE, 0)
    files = min(OPEN_FILES_MAX, free // 4)
    waiting = min(WAITING_MAX, free // (8 * (listeners + 1)))
    clients = free - files - waiting * (listeners + 1)
    if clients < _CLIENTS_MIN:
        _log.warning(
            "the limit of %d file descriptors leaves %d for clients: raise it (ulimit -n)",
            *(limit, max(clients, 0)),
        )
    return DescriptorShares(max(files, 1), max(waiting, 1), max(clients, _CLIENTS_MIN))


def current_shares(listeners: int) -> DescriptorShares:
    """Divide the limit of this process."""
    return descriptor_shares(resource.getrlimit(resource.RLIMIT_NOFILE)[0], listeners)
