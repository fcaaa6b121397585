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
