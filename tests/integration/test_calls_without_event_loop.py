"""On a ready connection without TLS, the thread of a blocking call reads the response itself."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bridgehead.admin import (
    AdminClient,
    ClientClosedError,
    KafkaError,
    KafkaTimeoutError,
    NewTopicWithReplication,
)
from bridgehead.admin.driver import Driver
from tests.integration.scripted_broker import (
    ScriptedBroker,
    end_the_connection,
    respond,
    scripted_broker,
    stay_silent,
)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with scripted_broker() as broker:
        yield broker


@pytest.fixture
def client(broker: ScriptedBroker) -> Iterator[AdminClient]:
    """A client with a ready connection."""
    with AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"}) as client:
        create(client, "first")
        yield client


@pytest.fixture
def runs(client: AdminClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that ran the client's event loop."""
    names: list[str] = []
    run = asyncio.SelectorEventLoop.run_forever

    def run_forever(loop: asyncio.SelectorEventLoop) -> None:
        names.append(threading.current_thread().name)
        run(loop)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "run_forever", run_forever)
    return names


def create(client: AdminClient, name: str) -> None:
    client.create_topic(NewTopicWithReplication(name, 1, 1))


def in_pieces(connection: socket.socket, response: bytes) -> None:
    for at in range(0, len(response), 10):
        time.sleep(0.01)  # so that the client reads each piece separately
        connection.sendall(response[at : at + 10])


@pytest.mark.parametrize("act", [respond, in_pieces])
def test_a_call_needs_no_event_loop(
    broker: ScriptedBroker,
    client: AdminClient,
    runs: list[str],
    act: Callable[[socket.socket, bytes], None],
) -> None:
    broker.script = [act]
    create(client, "second")
    assert not runs


def test_a_call_is_sent_again_if_the_connection_ends_without_a_response(
    broker: ScriptedBroker, client: AdminClient, runs: list[str]
) -> None:
    broker.script = [end_the_connection]
    with pytest.raises(KafkaError, match="already exists") as raised:
        create(client, "second")
    assert raised.value.resent
    assert runs == [threading.current_thread().name]
    create(client, "third")
    runs.clear()
    create(client, "fourth")
    assert not runs


def test_a_call_times_out_if_no_response_comes(broker: ScriptedBroker, client: AdminClient) -> None:
    broker.script = [stay_silent]
    began = time.monotonic()
    with pytest.raises(KafkaTimeoutError) as raised:
        create(client.with_timeout(300), "second")
    assert time.monotonic() - began < 20
    assert raised.value.sent
    create(client, "third")


def test_another_thread_can_send_while_a_call_waits(
    broker: ScriptedBroker, client: AdminClient
) -> None:
    """The broker answers the first request only after the second one."""
    held: list[bytes] = []
    has_arrived = threading.Event()

    def hold(connection: socket.socket, response: bytes) -> None:
        held.append(response)
        has_arrived.set()

    broker.script = [hold, lambda connection, response: connection.sendall(held[0] + response)]
    first = threading.Thread(target=create, args=(client, "second"))
    first.start()
    assert has_arrived.wait(20)
    create(client, "third")
    first.join(20)
    assert not first.is_alive()


def test_close_ends_a_call_that_waits(broker: ScriptedBroker, client: AdminClient) -> None:
    broker.script = [lambda connection, response: threading.Thread(target=client.close).start()]
    with pytest.raises(ClientClosedError):
        create(client, "second")
    client.close()
    client.close()


def test_a_call_returns_if_its_response_comes_together_with_another_event(
    broker: ScriptedBroker, client: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the client begins to wait, the response and the other event have already come."""
    both = threading.Event()
    wait_for = Driver.seconds_to_tick

    def respond_and_wake(connection: socket.socket, response: bytes) -> None:
        connection.sendall(response)
        loop = client._loop._loop
        assert loop is not None
        loop.call_soon_threadsafe(lambda: None)
        both.set()

    def seconds_to_tick(driver: Driver) -> float | None:
        assert both.wait(20)
        return wait_for(driver)

    monkeypatch.setattr(Driver, "seconds_to_tick", seconds_to_tick)
    broker.script = [respond_and_wake]
    caller = threading.Thread(target=create, args=(client, "second"), daemon=True)
    caller.start()
    caller.join(20)
    assert not caller.is_alive()
