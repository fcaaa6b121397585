"""Which sockets the handler of kazoo's connections reports as ready."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from zookeeper_client.tls_handler import TlsHandler

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_a_socket_with_data_is_readable(pair: Pair) -> None:
    near, far = pair
    far.send(b"data")
    assert TlsHandler(None).select([near, far], [], [], 30) == ([near], [], [])


def test_a_socket_with_room_is_writable(pair: Pair) -> None:
    near, _ = pair
    assert TlsHandler(None).select([], [near], [], 30) == ([], [near], [])


def test_a_socket_without_room_is_not_writable(pair: Pair) -> None:
    near, _ = pair
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            near.send(bytes(65_536))
    assert TlsHandler(None).select([], [near], [], 0) == ([], [], [])


def test_a_socket_is_readable_after_its_peer_has_closed(pair: Pair) -> None:
    near, far = pair
    far.close()
    assert TlsHandler(None).select([near], [], [], 30)[0] == [near]


def test_the_wait_ends_after_the_timeout(pair: Pair) -> None:
    near, _ = pair
    began = time.monotonic()
    assert TlsHandler(None).select([near], [], [], 0.05) == ([], [], [])
    assert time.monotonic() - began >= 0.05


def test_without_a_timeout_the_wait_ends_only_with_data(pair: Pair) -> None:
    near, far = pair
    threading.Timer(0.05, far.send, (b"data",)).start()
    assert TlsHandler(None).select([near], [], [], None)[0] == [near]


def test_a_closed_socket_is_an_error(pair: Pair) -> None:
    near, _ = pair
    near.close()
    with pytest.raises(ValueError, match="negative"):
        TlsHandler(None).select([near], [], [], 30)
