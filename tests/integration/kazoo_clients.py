"""ZooKeeper clients for tests, independent of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient


@contextmanager
def kazoo_client(connect: str, **options: Any) -> Iterator[KazooClient]:
    """A connected client; it is closed after the block."""
    client = KazooClient(connect, **options)
    client.start(timeout=30)
    try:
        yield client
    finally:
        client.stop()
        client.close()
