"""kazoo's connections over TLS, with our own SSLContext, and a cheaper wait for sockets.

kazoo supports TLS but waits only until the socket is readable. Without this handler, data that TLS
has already read from the socket, such as a second reply in one record, would not be processed until
more data arrives. Also, kazoo creates an epoll object for each wait, several times per request.
"""

from __future__ import annotations

import math
import select
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
        self.rejection = ""  # the error of the last failed handshake

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_options: Any
    ) -> socket.socket:
        """Connect within `timeout` seconds. `hostname` is what the TLS context may check."""
        connection: socket.socket = create_tcp_connection(socket, address, timeout=timeout)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except OSError as error:
            self.rejection = getattr(error, "verify_message", "") or str(error)
            connection.close()
            raise

    def select(
        self,
        readable: Sequence[Any],
        writable: Sequence[Any],
        failed: Sequence[Any],
        timeout: float | None = None,
    ) -> Ready:
        """Wait for sockets. A socket with buffered TLS data is ready immediately.

        `failed` is always empty: kazoo does not use it.
        """
        holding = [
            stream for stream in readable if isinstance(stream, ssl.SSLSocket) and stream.pending()
        ]
        if not holding:
            return _wait(readable, writable, timeout)
        read, write, broken = _wait(readable, writable, 0)
        return [*holding, *(stream for stream in read if stream not in holding)], write, broken


def _wait(readable: Sequence[Any], writable: Sequence[Any], timeout: float | None) -> Ready:
    """Wait until a socket is ready or has an error. Without a timeout, wait without a limit.

    Raises:
        ValueError: a socket is closed.
    """
    poll = select.poll()
    for stream in readable:
        poll.register(stream, select.POLLIN)
    for stream in writable:
        poll.register(stream, select.POLLOUT)
    events = dict(poll.poll(None if timeout is None else math.ceil(timeout * 1000)))
    if any(event & select.POLLNVAL for event in events.values()):
        raise ValueError("a socket was closed")
    read = [stream for stream in readable if stream.fileno() in events]
    return read, [stream for stream in writable if stream.fileno() in events], []
