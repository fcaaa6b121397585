"""The quota connection_creation_rate of an IP address.

With a rate of 1 per second, a live Kafka 3.9.1 accepted ten connections at once. It closed each
further connection, but only after a second.
"""

from __future__ import annotations

from broker_proxy.connections.connection_rates import ConnectionRates

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
