"""max.connections and related limits, as in Kafka 3.9: rejections and delays."""

from __future__ import annotations

from broker_proxy.connections.connection_quotas import ConnectionLimits, ConnectionQuotas
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.host_text import host_text
from metrics.windows import Average

INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"
A, B = "10.0.0.1", "10.0.0.2"
LOOPBACK_6 = host_text(bytes(15) + b"\x01")  # as the server writes a client's address


class Broker:
    """The connection quotas of a broker. Tests set the clock `now_s`."""

    def __init__(self, *listeners: str, **properties: str) -> None:
        self.now_s = 1000.0
        self.quotas = ConnectionQuotas(
            listeners or (INSIDE, OUTSIDE),
            INSIDE,
            samples=11,
            window_s=1,
            now_s=lambda: self.now_s,
        )
        self.configure({name.replace("_", "."): value for name, value in properties.items()})

    def configure(self, *layers: dict[str, str]) -> None:
        static, *stored = layers
        config = EffectiveBrokerConfig.of(BrokerConfig.from_properties(static), *stored)
        self.quotas.limits = ConnectionLimits.of(config, self.quotas.listeners)

    def connect(self, count: int, listener: str = OUTSIDE, address: str = A) -> list[int | None]:
        return [self.quotas.add(listener, address) for _ in range(count)]


def test_without_limits_every_connection_is_accepted() -> None:
    broker = Broker()
    assert broker.connect(5_000) == [None] * 5_000
    assert broker.quotas.has_slot(OUTSIDE)
    assert sum(broker.quotas.delay_ms(OUTSIDE) for _ in range(1_000)) == 0


def test_a_connection_beyond_the_limit_of_its_address_is_rejected_and_not_counted() -> None:
    broker = Broker(max_connections_per_ip="2")
    assert broker.connect(4) == [None, None, 2, 2]
    assert broker.connect(2, address=B) == [None, None]
    broker.quotas.remove(OUTSIDE, A)
    assert broker.connect(2) == [None, 2]


def test_an_address_override_raises_or_lowers_the_limit() -> None:
    """Host names have no effect (docs/differences.md)."""
    text = "10.0.0.1:3, 10.2:0,[::1]:3,somewhere:0"
    broker = Broker(max_connections_per_ip="1", max_connections_per_ip_overrides=text)
    assert broker.connect(4) == [None, None, None, 3]
    assert broker.connect(1, address=B) == [0]
    assert broker.connect(1, address="10.0.0.3") == [None]
    assert broker.connect(4, address=LOOPBACK_6) == [None, None, None, 3]
    assert B not in broker.quotas._by_address, "a rejected address was remembered"


def test_the_inter_broker_listener_is_exempt_from_max_connections() -> None:
    """Its connections count for the limit, so another listener's connection may have to close."""
    broker = Broker(max_connections="2")
    broker.connect(2)
    assert not broker.quotas.has_slot(OUTSIDE)
    assert broker.quotas.has_slot(INSIDE)
    broker.connect(1, INSIDE)
    assert broker.quotas.excess == 1
    broker.quotas.remove(OUTSIDE, A)
    assert broker.quotas.excess == 0
    assert not broker.quotas.has_slot(OUTSIDE)


def test_a_single_listener_is_not_exempt() -> None:
    broker = Broker(INSIDE, max_connections="1")
    broker.connect(1, INSIDE)
    assert not broker.quotas.has_slot(INSIDE)


def test_the_limit_of_a_listener_overrides_the_limit_of_the_broker() -> None:
    broker = Broker()
    listener_key = "listener.name.outside.max.connections"
    broker.configure({"max.connections": "3", listener_key: "1"})
    broker.connect(1)
    assert not broker.quotas.has_slot(OUTSIDE)
    broker.connect(3, INSIDE)
    assert not broker.quotas.has_slot(INSIDE)


def test_stored_limits_override_static_ones() -> None:
    """A broker's stored value overrides the cluster default. Both override the static value."""
    broker = Broker(max_connections="9")
    broker.connect(4)
    broker.configure({"max.connections": "9"}, {"max.connections": "3"}, {"max.connections": "2"})
    assert broker.quotas.excess == 2
    broker.configure({"max.connections": "9"})
    assert broker.quotas.excess == 0
    broker.configure({}, {}, {"listener.name.outside.max.connections": "4"})
    assert not broker.quotas.has_slot(OUTSIDE)
    assert broker.quotas.has_slot(INSIDE)


def test_new_connections_wait_for_the_stricter_creation_rate() -> None:
    broker = Broker()
    listener_key = "listener.name.outside.max.connection.creation.rate"
    broker.configure({"max.connection.creation.rate": "100", listener_key: "2"})
    assert [broker.quotas.delay_ms(OUTSIDE) for _ in range(23)] == [0] * 20 + [500, 1000, 1000]
    assert broker.quotas.throttle_times_ms() == {(OUTSIDE,): 2500 / 3, (INSIDE,): 0}
    assert [broker.quotas.delay_ms(INSIDE) for _ in range(1_000)] == [0] * 1_000
    assert broker.quotas.delay_ms(INSIDE) == 10
    assert broker.quotas.broker_accept_rate() == 2.3, (
        "connections of the inter-broker listener were counted"
    )
    assert broker.quotas.accept_rates() == {(OUTSIDE,): 2.3, (INSIDE,): 100.1}


def test_a_connection_delayed_for_its_address_does_not_count_for_the_brokers_rate() -> None:
    broker = Broker(max_connection_creation_rate="1")
    for _ in range(50):
        assert broker.quotas.delay_ms(OUTSIDE) == 0
        broker.quotas.take_back(OUTSIDE, 700)
    assert broker.quotas.broker_accept_rate() == 0
    assert broker.quotas.address_throttle_times_ms() == {(OUTSIDE,): 700, (INSIDE,): 0}


def test_the_rate_is_averaged_over_the_last_windows_only() -> None:
    average = Average(samples=2, window_ms=1_000)
    assert average.measure(0.0) == 0
    for value, now_s in ((10, 0.0), (20, 0.5), (60, 1.2)):
        average.record(value, now_s)
    assert average.measure(1.5) == 30
    assert average.measure(2.1) == 60
    assert average.measure(9.0) == 0
