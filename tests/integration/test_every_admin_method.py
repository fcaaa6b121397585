"""Every admin method of three released clients and of ours, against three brokers.

The checks are in `client_methods/`. The test fails for a client method that has no check there and
is not listed as out of scope. So it fails if a new version of a client has a new method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from broker_proxy.requests.routing import SHIPPED
from tests.integration.client_methods import CLIENTS

FEW = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.dirs": "/logs-a,/logs-b",
}


def public(client: type[Any]) -> set[str]:
    """Return the names of a client's public methods and attributes."""
    return {name for name in dir(client) if not name.startswith("_")}


def exercised() -> Iterator[Any]:
    """Yield every client's methods, except those that are out of scope."""
    for methods in CLIENTS:
        for name in sorted(public(methods.CLIENT) - set(methods.OUT_OF_SCOPE)):
            yield pytest.param(methods, name, id=f"{methods.__name__}-{name}")


@pytest.fixture(scope="module")
def connected(new_chroot: Callable[[], str]) -> Iterator[dict[str, Any]]:
    """Each client, connected to one cluster; broker 1 is the controller."""
    with Cluster(zookeeper=new_chroot(), controller=1, properties=FEW) as cluster:
        clients = {kind.__name__: kind(cluster.bootstrap_servers) for kind in CLIENTS}
        yield clients
        for client in clients.values():
            client.end()


@pytest.mark.parametrize(("methods", "name"), exercised())
def test_client_method_works(connected: dict[str, Any], methods: type[Any], name: str) -> None:
    """The method has the expected result or error."""
    exercise = getattr(connected[methods.__name__], name, None)
    assert exercise is not None, (
        f"{methods.__name__} has a new method {name}: exercise it in client_methods, or "
        "list it there as out of scope."
    )
    exercise()


@pytest.mark.parametrize("methods", CLIENTS)
def test_methods_out_of_scope_exist_and_need_no_served_api(methods: type[Any]) -> None:
    """Each listed method exists. If the reason is an API key, brokers do not serve that API."""
    for name, reason in methods.OUT_OF_SCOPE.items():
        assert name in public(methods.CLIENT), name
        assert isinstance(reason, str) or reason not in SHIPPED, name
