"""Which thread a blocking call of the admin client uses, and calls that end early."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from bridgehead.admin import AdminClient, ClientClosedError, InvalidCallError
from bridgehead.admin.driver import Driver
from bridgehead.cluster import Cluster
from tests.integration.processes import wait_until


@pytest.fixture(scope="module")
def cluster(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    allowed = {"bridgehead.faults.allow": "true"}
    with Cluster(zookeeper=new_chroot(), brokers=2, properties=allowed) as started:
        yield started


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class Interrupted(Exception):
    """Raised by a signal handler, as KeyboardInterrupt is when the user presses Ctrl-C."""


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which the client received data from a broker."""
    names: list[str] = []
    receive = Driver.received

    def received(driver: Driver, number: int, data: bytes) -> None:
        names.append(threading.current_thread().name)
        receive(driver, number, data)

    monkeypatch.setattr(Driver, "received", received)
    return names


def test_a_single_call_uses_the_thread_of_its_caller(servers: str, threads: list[str]) -> None:
    with AdminClient({"bootstrap.servers": servers}) as client:
        client.describe_cluster()
    assert set(threads) == {threading.current_thread().name}


def test_a_call_that_returns_a_future_uses_the_clients_thread(
    servers: str, threads: list[str]
) -> None:
    with AdminClient({"bootstrap.servers": servers}) as client:
        client.alter_config("topic", {"orders": {"retention.ms": "1"}}).exception(30)
    assert set(threads) == {"bridgehead-admin"}


async def test_a_coroutine_can_make_a_blocking_call(servers: str, threads: list[str]) -> None:
    """The coroutine's thread runs an event loop, so the client's own thread does the I/O."""
    with AdminClient({"bootstrap.servers": servers}) as client:
        assert len(client.describe_cluster().nodes) == 2
    assert set(threads) == {"bridgehead-admin"}


def test_calls_work_before_and_after_a_pause(servers: str) -> None:
    """The client's own thread closes the connections when they are idle.

    It starts to watch them within two seconds after the last call.
    """
    with AdminClient({"bootstrap.servers": servers, "connections.max.idle.ms": 1000}) as client:
        for _ in range(3):
            client.describe_cluster()
        loop = client._loop
        wait_until(lambda: loop._driver._sockets, lambda left: not left)  # closed when idle
        for _ in range(3):
            assert len(client.describe_cluster().nodes) == 2


def test_a_call_in_a_callback_of_a_future_fails_instead_of_waiting_for_itself(servers: str) -> None:
    errors: list[BaseException | None] = []
    with AdminClient({"bootstrap.servers": servers}) as client:

        def again(_: object) -> None:
            try:
                client.describe_cluster()
            except InvalidCallError as error:
                errors.append(error)

        future = client.alter_config("topic", {"orders": {"retention.ms": "1"}})
        future.add_done_callback(again)
        future.exception(30)
        wait_until(lambda: len(errors), lambda count: count == 1)


def test_an_interrupt_ends_the_wait_and_leaves_the_client_usable(silent: str) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with AdminClient({"bootstrap.servers": silent}) as client:
            for _ in range(3):
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                with pytest.raises(Interrupted):
                    client.describe_cluster()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "bridgehead-admin" not in {thread.name for thread in threading.enumerate()}


def test_close_ends_the_call_of_another_thread(silent: str) -> None:
    client = AdminClient({"bootstrap.servers": silent})
    threading.Timer(0.3, client.close).start()
    began = time.monotonic()
    with pytest.raises(ClientClosedError):
        client.describe_cluster()
    assert time.monotonic() - began < 20


def test_close_ends_the_calls_of_several_threads(silent: str) -> None:
    client = AdminClient({"bootstrap.servers": silent})
    errors: list[object] = []

    def call() -> None:
        try:
            client.describe_cluster()
        except ClientClosedError as error:
            errors.append(error)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    wait_until(lambda: client._loop._calls, lambda count: count == 3)
    client.close()
    for caller in callers:
        caller.join(20)
    assert len(errors) == 3


def test_other_calls_get_a_response_while_the_first_caller_waits(cluster: Cluster) -> None:
    """Broker 2 never answers the first call. Broker 1 answers the others."""
    errors: list[object] = []

    def call(client: AdminClient) -> None:
        try:
            client.pinned_to(2).describe_client_quotas()
        except ClientClosedError as error:
            errors.append(error)

    rule = cluster.faults.add("drop", broker=2, api="DescribeClientQuotas")
    with AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        first = threading.Thread(target=call, args=[client], daemon=True)
        first.start()
        wait_until(lambda: cluster.faults.hits(rule), lambda hits: hits == 1)
        for _ in range(3):
            assert len(client.pinned_to(1).describe_cluster().nodes) == 2
        assert errors == []
    first.join(20)
    assert len(errors) == 1
