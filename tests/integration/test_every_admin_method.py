"""Released admin clients do everything that they offer against three brokers.

Read first: the methods are in `client_methods/`. What a client's next version adds is found here:
a method that is neither exercised nor explained fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from broker_proxy.routing import SHIPPED
from tests.integration.client_methods import CLIENTS

FEW = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.dirs": "/logs-a,/logs-b",
}


def public(client: type[Any]) -> set[str]:
    """Return the names that a client offers."""
    return {name for name in dir(client) if not name.startswith("_")}


def exercised() -> Iterator[Any]:
    """Every method of every client that is not out of scope."""
    for methods in CLIENTS:
        for name in sorted(public(methods.CLIENT) - set(methods.OUT_OF_SCOPE)):
            yield pytest.param(methods, name, id=f"{methods.__name__}-{name}")


@pytest.fixture(scope="module")
def connected() -> Iterator[dict[str, Any]]:
    """Each client, connected to one cluster; broker 1 is the controller."""
    with Cluster(controller=1, properties=FEW) as cluster:
        clients = {each.__name__: each(cluster.bootstrap_servers) for each in CLIENTS}
        yield clients
        for client in clients.values():
            client.end()


@pytest.mark.parametrize(("methods", "name"), exercised())
def test_what_a_client_offers_it_can_do(
    connected: dict[str, Any], methods: type[Any], name: str
) -> None:
    """Whatever it is: done, or refused as a Kafka without groups and transactions refuses it."""
    exercise = getattr(connected[methods.__name__], name, None)
    assert exercise is not None, (
        f"{methods.__name__} has a new method {name}: exercise it in client_methods, or say "
        "there why it is out of scope."
    )
    exercise()


@pytest.mark.parametrize("methods", CLIENTS)
def test_what_is_out_of_scope_is_not_served(methods: type[Any]) -> None:
    """A reason holds only as long as the API that it names is not served and the method exists."""
    for name, reason in methods.OUT_OF_SCOPE.items():
        assert name in public(methods.CLIENT), name
        assert isinstance(reason, str) or reason not in SHIPPED, name
