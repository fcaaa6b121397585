"""kazoo's connections over TLS, with a context of ours.

kazoo can do TLS itself, but waits for the socket alone: what TLS has read already and not handed
out, a second reply in one record, would lie there until something else comes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.handlers.utils import create_tcp_connection

Ready = tuple[list[Any], list[Any], list[Any]]


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's own handler; where there is a context, connections are wrapped in it."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls
        self.refusal = ""  # why the last handshake failed

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_options: Any
    ) -> socket.socket:
        """Connect within `timeout` seconds; `hostname` is what the certificate must say."""
        connection: socket.socket = create_tcp_connection(socket, address, timeout=timeout)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except OSError as wrong:
            self.refusal = getattr(wrong, "verify_message", "") or str(wrong)
            connection.close()
            raise

    def select(
        self,
        readable: Sequence[Any],
        writable: Sequence[Any],
        failed: Sequence[Any],
        timeout: float | None = None,
    ) -> Ready:
        """Wait for sockets; one that holds what it has read already is ready now."""
        holding = [each for each in readable if isinstance(each, ssl.SSLSocket) and each.pending()]
        if not holding:
            ready: Ready = super().select(readable, writable, failed, timeout)
            return ready
        read, write, broken = super().select(readable, writable, failed, 0)
        return [*holding, *(each for each in read if each not in holding)], write, broken
