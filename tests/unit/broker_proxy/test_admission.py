"""Connections that a broker does not admit, or admits later."""

from __future__ import annotations

import asyncio

from broker_proxy.connections.admission import WAITING_MAX, Admission
from broker_proxy.connections.connection_quotas import ConnectionLimits, ConnectionQuotas
from broker_proxy.connections.connection_rates import ConnectionRates


class Socket(asyncio.Transport):
    """Records whether it was aborted."""

    is_aborted = False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def new_admission(*listeners: str, inter_broker: str | None = None) -> Admission:
    named = listeners or ("PLAINTEXT",)
    quotas = ConnectionQuotas(named, inter_broker, samples=11, window_s=1, now_s=lambda: 0.0)
    return Admission(quotas, ConnectionRates(11, 1, lambda: 0.0), lambda: 0.0)


def test_a_connection_that_arrives_after_the_close_is_aborted() -> None:
    """The event loop accepts a connection in one turn and announces it in a later one."""
    admission = new_admission()
    entered: list[Socket] = []
    before, after = Socket(), Socket()
    admission.arrive("PLAINTEXT", before, "10.0.0.1", lambda: entered.append(before))
    admission.close()
    admission.arrive("PLAINTEXT", after, "10.0.0.1", lambda: entered.append(after))
    assert (entered, before.is_aborted, after.is_aborted) == ([before], False, True)


def test_a_connection_that_cannot_be_recorded_is_closed_and_takes_no_slot() -> None:
    """If it stayed open, its client would wait for a broker that never reads its requests."""
    admission, entered = new_admission(), []
    admission.quotas.limits = ConnectionLimits(listeners={"PLAINTEXT": 1})
    first, second = Socket(), Socket()

    def enter() -> None:
        raise OSError("No space left on device")

    admission.arrive("PLAINTEXT", first, "10.0.0.1", enter)
    admission.arrive("PLAINTEXT", second, "10.0.0.1", lambda: entered.append(second))
    assert (first.is_aborted, entered) == (True, [second])


def test_waiting_clients_do_not_keep_brokers_from_the_inter_broker_listener() -> None:
    """KIP-402: the limit of the broker does not apply to the inter-broker listener."""
    admission = new_admission("CLIENTS", "INTERNAL", inter_broker="INTERNAL")
    admission.quotas.limits = ConnectionLimits(broker=2)
    clients = [Socket() for _ in range(WAITING_MAX + 3)]
    for client in clients:
        admission.arrive("CLIENTS", client, "10.0.0.9", lambda: None)
    assert [client.is_aborted for client in clients] == [False] * (WAITING_MAX + 2) + [True]
    entered: list[str] = []
    admission.arrive("INTERNAL", Socket(), "10.0.0.1", lambda: entered.append("broker"))
    assert entered == ["broker"]


# The quota connection_creation_rate of an IP address.

KEY = "connection_creation_rate"


class Broker:
    """The connection rates of a broker. Tests set the clock `now_s`."""

    def __init__(self, **limits: str) -> None:
        self.now_s = 1000.0
        self.rates = ConnectionRates(11, 1, lambda: self.now_s)
        self.rates.replace_all({name: {KEY: value} for name, value in limits.items()})

    def connect(self, count: int, address: str = "10.0.0.1") -> list[int | None]:
        return [self.rates.delay_ms(address) for _ in range(count)]


def test_an_address_may_open_the_connections_of_ten_seconds_at_once() -> None:
    broker = Broker(**{"10.0.0.1": "1"})
    assert broker.connect(13) == [None] * 10 + [1000] * 3


def test_an_ipv6_address_may_be_abbreviated() -> None:
    broker = Broker(**{"2001%3Adb8%3A%3A1": "1"})
    assert broker.connect(11, "2001:db8:0:0:0:0:0:1") == [None] * 10 + [1000]


def test_connections_over_the_rate_are_not_counted() -> None:
    broker = Broker(**{"10.0.0.1": "1"})
    broker.connect(10)
    for _ in range(8):
        broker.now_s += 1
        assert broker.connect(5) == [1000] * 5
    broker.now_s += 12
    assert broker.connect(11) == [None] * 10 + [1000]


def test_the_rate_of_an_address_overrides_the_default() -> None:
    broker = Broker(**{"<default>": "0", "10.0.0.1": "2"})
    assert broker.connect(21) == [None] * 20 + [500]
    assert broker.connect(1, "10.0.0.2") == [1000]
    broker.rates.update("<default>", {})
    assert broker.connect(100, "10.0.0.2") == [None] * 100


def test_addresses_are_parsed_as_in_java_and_host_names_have_no_effect() -> None:
    """Kafka's brokers look up host names; we do not (docs/differences.md)."""
    rates = {"127.1": "0", "0:0:0:0:0:0:0:2": "0", "localhost": "0", "10.0.0.9": "nonsense"}
    broker = Broker(**rates)
    assert broker.connect(1, "127.0.0.1") == [1000]
    assert broker.connect(1, "0:0:0:0:0:0:0:2") == [1000]
    assert broker.connect(1, "10.0.0.9") == [None]
    assert broker.connect(1, "::1") == [None]


def test_the_number_of_delayed_connections_is_bounded() -> None:
    broker = Broker(**{"<default>": "0"})
    broker.rates.kept_waiting = 1_000
    assert broker.connect(1) == [0]


def test_the_number_of_remembered_addresses_is_bounded() -> None:
    broker = Broker(**{"<default>": "1"})
    for number in range(10_050):
        broker.connect(1, f"10.0.{number // 256}.{number % 256}")
    assert len(broker.rates._seen) == 10_000
