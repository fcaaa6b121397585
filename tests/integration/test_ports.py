"""Processes that choose ports at the same time get different ones, also on a busy machine."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bridgehead.application import module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports, reserve_on_this_machine

PROCESSES, EACH, ROWS = 8, 50, 5
# Chooses when it gets a line, writes the ports, and holds them until its input ends. Every process
# begins to look at the same port, so they compete for each one.
HOLDER = """
import gc, json, secrets, sys
from bridgehead.cluster.ports import Ports
secrets.randbelow = lambda count: count // 2
print(flush=True)
sys.stdin.readline()
ports = [Ports().choose() for _ in range(int(sys.argv[1]))]
rows = [Ports().choose_row(3) for _ in range(int(sys.argv[2]))]
gc.collect()
print(json.dumps(ports + [port for first in rows for port in range(first, first + 3)]), flush=True)
sys.stdin.read()
"""


def holder(ports: int, rows: int) -> subprocess.Popen[str]:
    """Start a process that chooses when it gets a line."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(ports), str(rows)],
        env=module_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "\n"


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def chosen(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return list(json.loads(process.stdout.readline()))


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start holders; they end with the test."""
    with ExitStack() as started:

        def one(ports: int, rows: int = 0) -> subprocess.Popen[str]:
            process = started.enter_context(holder(ports, rows))
            started.callback(process.kill)
            until_ready(process)
            return process

        yield one


@pytest.fixture
def ports() -> Iterator[Ports]:
    with Ports() as reserved:
        yield reserved


def is_free(port: int) -> bool:
    """Whether another `Ports` could choose the port."""
    held = reserve_on_this_machine(LOOPBACK, port, "server")
    if held is not None:
        held.close()
    return held is not None


def test_processes_that_choose_at_the_same_time_get_different_ports(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    processes = [start(EACH, ROWS) for _ in range(PROCESSES)]
    for process in processes:
        begin(process)
    numbers = [port for process in processes for port in chosen(process)]
    assert len(numbers) == len(set(numbers)) == PROCESSES * (EACH + 3 * ROWS)
    assert not any(is_free(port) for port in numbers if port >= 20_000)


def test_the_ports_of_a_killed_process_are_free(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    process = start(5)
    begin(process)
    numbers = chosen(process)
    assert not any(is_free(port) for port in numbers)
    process.kill()
    process.wait()
    assert all(is_free(port) for port in numbers)


@pytest.mark.parametrize("listens", [True, False])
def test_the_port_of_a_foreign_socket_is_skipped(
    monkeypatch: pytest.MonkeyPatch, ports: Ports, listens: bool
) -> None:
    first = ports.choose()
    ports.close()
    monkeypatch.setattr(secrets, "randbelow", lambda _count: first - 20_000)
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        foreign.bind((LOOPBACK, first))
        if listens:
            foreign.listen()
        assert ports.choose() != first
    ports.close()
    assert ports.choose() == first


def test_a_reserved_port_is_free_for_its_server_again_and_again(ports: Ports) -> None:
    port = ports.choose()
    assert not is_free(port)
    for _ in range(2):
        # Uses SO_REUSEADDR, as asyncio, gRPC, Java and Docker do.
        with (
            socket.create_server((LOOPBACK, port)) as server,
            socket.create_connection((LOOPBACK, port)),
        ):
            server.accept()[0].close()
            assert not is_free(port)
        assert not is_free(port), "a stopped server has lost its port before its restart"


def test_a_reserved_port_is_not_used_for_an_outgoing_connection(ports: Ports) -> None:
    port = ports.choose()
    with socket.create_server((LOOPBACK, 0)) as server, socket.socket() as client:
        with pytest.raises(OSError, match="in use"):
            client.bind((LOOPBACK, port))
        client.connect(server.getsockname())
        assert client.getsockname()[1] != port


def test_a_demanded_port_is_reserved_although_connections_of_its_last_server_linger(
    ports: Ports,
) -> None:
    port = ports.choose()
    with socket.create_server((LOOPBACK, port)) as server:
        client = socket.create_connection((LOOPBACK, port))
        accepted, _ = server.accept()
        accepted.close()  # first, so that the server's end waits in TIME_WAIT
        client.close()
    ports.close()
    assert not is_free(port)
    assert ports.demand(LOOPBACK, port) == port
    with Ports() as others:
        with pytest.raises(ClusterError, match=f"Port {port} is in use"):
            others.demand(LOOPBACK, port)
        assert others.prefer(LOOPBACK, port) != port


def test_a_row_is_handed_to_the_process_that_demands_it(ports: Ports) -> None:
    first = ports.choose_row(3)
    with Ports() as allocator:
        for port in range(first, first + 3):
            assert allocator.demand(LOOPBACK, port) == port
            socket.create_server((LOOPBACK, port)).close()
    with Ports() as others:
        rows = {others.choose_row(3) for _ in range(50)}
    assert first not in rows
