"""Released Kafka clients use three nodes: all see each other's changes and get Kafka's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from bridgehead.cluster import Cluster
from tests.integration.admin_clients import ADMINS, AnyAdmin, code_of
from tests.integration.processes import wait_until

CLIENTS = tuple(ADMINS)
UNKNOWN_TOPIC, BAD_NAME, EXISTS, BAD_PARTITIONS, BAD_REPLICATION, BAD_CONFIG = 3, 17, 36, 37, 38, 40


@pytest.fixture(scope="module")
def admins(new_chroot: Callable[[], str]) -> Iterator[dict[str, AnyAdmin]]:
    """Every client, connected to one cluster. Each broker reports itself as the controller."""
    with Cluster(
        zookeeper=new_chroot(), properties={"bridgehead.metadata.controller.id": "self"}
    ) as cluster:
        connected = {name: admin(cluster.bootstrap_servers) for name, admin in ADMINS.items()}
        yield connected
        for admin in connected.values():
            admin.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_sees_the_changes_of_every_other(
    admins: dict[str, AnyAdmin], client: str
) -> None:
    """One client creates, extends, alters and deletes a topic; the others see every step."""
    admin, name = admins[client], f"life-{client}"

    def all_see(read: Callable[[AnyAdmin], object], expected: object) -> None:
        for viewer in admins.values():
            wait_until(partial(read, viewer), lambda value: value == expected)

    admin.create(name, 2, 3, {"retention.ms": "86400000"})
    all_see(lambda viewer: name in viewer.names(), True)
    all_see(lambda viewer: viewer.partitions(name), 2)
    all_see(lambda viewer: viewer.configs(name)["retention.ms"], "86400000")
    admin.create_partitions(name, 5)
    all_see(lambda viewer: viewer.partitions(name), 5)
    if admin.has_incremental:
        admin.alter(name, {"cleanup.policy": "compact"}, legacy=False)
        all_see(lambda viewer: viewer.configs(name)["cleanup.policy"], "compact")
        all_see(lambda viewer: viewer.configs(name)["retention.ms"], "86400000")
    admin.alter(name, {"segment.bytes": "1048576"}, legacy=True)
    all_see(lambda viewer: viewer.configs(name)["segment.bytes"], "1048576")
    retention_ms = "86400000" if admin.legacy_keeps_others else "604800000"
    all_see(lambda viewer: viewer.configs(name)["retention.ms"], retention_ms)
    admin.delete(name)
    all_see(lambda viewer: name in viewer.names(), False)


@pytest.mark.parametrize("client", CLIENTS)
def test_errors_arrive_as_the_clients_own_exceptions(
    admins: dict[str, AnyAdmin], client: str
) -> None:
    """Each invalid request gets Kafka's code and changes nothing."""
    admin, name = admins[client], f"invalid-{client}"
    admin.create(name, 2, 1, {})
    wait_until(lambda: name in admin.names())
    wrong: list[tuple[int, Callable[[], None]]] = [
        (EXISTS, lambda: admin.create(name, 1, 1, {})),
        (BAD_NAME, lambda: admin.create("no/slashes", 1, 1, {})),
        (BAD_CONFIG, lambda: admin.create(f"{name}-a", 1, 1, {"retention.ms": "long"})),
        (BAD_CONFIG, lambda: admin.create(f"{name}-b", 1, 1, {"no.such.config": "1"})),
        (BAD_REPLICATION, lambda: admin.create(f"{name}-c", 1, 4, {})),
        (BAD_PARTITIONS, lambda: admin.create_partitions(name, 1)),
        (UNKNOWN_TOPIC, lambda: admin.create_partitions(f"{name}-none", 3)),
        (BAD_CONFIG, lambda: admin.alter(name, {"segment.bytes": "many"}, legacy=True)),
        (UNKNOWN_TOPIC, lambda: admin.delete(f"{name}-none")),
    ]
    if admin.has_incremental:
        alter = (BAD_CONFIG, lambda: admin.alter(name, {"segment.bytes": "x"}, legacy=False))
        wrong.append(alter)
    codes = []
    for _, act in wrong:
        try:
            act()
            codes.append(0)
        except Exception as error:
            codes.append(code_of(client, error))
    assert codes == [code for code, _ in wrong]
    # Any broker may answer, and a busy one applies metadata late.
    wait_until(lambda: {key for key in admin.names() if key.startswith(name)} == {name})
    wait_until(lambda: admin.partitions(name) == 2)
