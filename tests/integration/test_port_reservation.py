"""A chosen port stays reserved, so clusters that start at the same time do not collide."""

from __future__ import annotations

import socket

from bridgehead.cluster.node_plan import LOOPBACK, Ports


def test_a_chosen_port_is_reserved_for_its_server() -> None:
    ours, others = Ports(), Ports()
    port = ours.choose()
    assert not others._reserve(LOOPBACK, port)
    with socket.create_server((LOOPBACK, port)):  # uses SO_REUSEADDR, as asyncio, gRPC and Java do
        assert not others._reserve(LOOPBACK, port)
    assert not others._reserve(LOOPBACK, port), (
        "the port of a stopped server is no longer reserved for its restart"
    )
    del ours
    assert others._reserve(LOOPBACK, port)
