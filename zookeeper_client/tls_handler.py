"""kazoo's connections over TLS, with our own SSLContext.

kazoo supports TLS but waits only until the socket is readable. Without this handler, data that TLS
has already read from the socket, such as a second reply in one record, would not be processed until
more data arrives.
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
    """kazoo's handler. If it has an SSLContext, it wraps connections in TLS."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls
        self.refusal = ""  # the error of the last failed handshake

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_options: Any
    ) -> socket.socket:
        """Connect within `timeout` seconds. The server's certificate must name `hostname`."""
        connection: socket.socket = create_tcp_connection(socket, address, timeout=timeout)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except OSError as error:
            self.refusal = getattr(error, "verify_message", "") or str(error)
            connection.close()
            raise

    def select(
        self,
        readable: Sequence[Any],
        writable: Sequence[Any],
        failed: Sequence[Any],
        timeout: float | None = None,
    ) -> Ready:
        """Wait for sockets. A socket with buffered TLS data is ready immediately."""
        holding = [each for each in readable if isinstance(each, ssl.SSLSocket) and each.pending()]
        if not holding:
            ready: Ready = super().select(readable, writable, failed, timeout)
            return ready
        read, write, broken = super().select(readable, writable, failed, 0)
        return [*holding, *(each for each in read if each not in holding)], write, broken
