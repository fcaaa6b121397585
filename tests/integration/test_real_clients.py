"""Released Kafka clients against three real nodes: a topic's life, shared sight, own exceptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from bridgehead.cluster import Cluster
from tests.integration.admin_clients import HANDS, AdminHand, code_of

CLIENTS = tuple(HANDS)
UNKNOWN_TOPIC, BAD_NAME, EXISTS, BAD_PARTITIONS, BAD_REPLICATION, BAD_CONFIG = 3, 17, 36, 37, 38, 40


@pytest.fixture(scope="module")
def hands() -> Iterator[dict[str, AdminHand]]:
    """Every client, connected to one cluster that forwards whatever it receives."""
    with Cluster(properties={"bridgehead.metadata.controller.id": "self"}) as cluster:
        connected = {name: hand(cluster.bootstrap_servers) for name, hand in HANDS.items()}
        yield connected
        for hand in connected.values():
            hand.close()


def becomes_true(condition: Callable[[], bool], timeout_s: float = 30.0) -> bool:
    """Ask again until it is so: a write is known to the controller first, to all soon after."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_sees_what_each_does_to_a_topic(
    hands: dict[str, AdminHand], client: str
) -> None:
    """Created, grown, changed, described, listed and deleted by one; the others see every step."""
    hand, name = hands[client], f"life-{client}"

    def all_see(look: Callable[[AdminHand], object], expected: object) -> bool:
        return all(
            becomes_true(lambda each=each: look(each) == expected) for each in hands.values()
        )

    hand.create(name, 2, 3, {"retention.ms": "86400000"})
    assert all_see(lambda each: name in each.names(), True)
    assert all_see(lambda each: each.partitions(name), 2)
    assert all_see(lambda each: each.configs(name)["retention.ms"], "86400000")
    hand.grow(name, 5)
    assert all_see(lambda each: each.partitions(name), 5)
    if hand.has_incremental:
        hand.alter(name, {"cleanup.policy": "compact"}, legacy=False)
        assert all_see(lambda each: each.configs(name)["cleanup.policy"], "compact")
        assert all_see(lambda each: each.configs(name)["retention.ms"], "86400000")
    hand.alter(name, {"segment.bytes": "1048576"}, legacy=True)
    assert all_see(lambda each: each.configs(name)["segment.bytes"], "1048576")
    retention_ms = "86400000" if hand.legacy_keeps_others else "604800000"
    assert all_see(lambda each: each.configs(name)["retention.ms"], retention_ms)
    hand.delete(name)
    assert all_see(lambda each: name in each.names(), False)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refusal_arrives_as_the_clients_own_exception(
    hands: dict[str, AdminHand], client: str
) -> None:
    """Each wrong request has the code that Kafka gives it, and nothing came of it."""
    hand, name = hands[client], f"refused-{client}"
    hand.create(name, 2, 1, {})
    assert becomes_true(lambda: name in hand.names())
    wrong: list[tuple[int, Callable[[], None]]] = [
        (EXISTS, lambda: hand.create(name, 1, 1, {})),
        (BAD_NAME, lambda: hand.create("no/slashes", 1, 1, {})),
        (BAD_CONFIG, lambda: hand.create(f"{name}-a", 1, 1, {"retention.ms": "long"})),
        (BAD_CONFIG, lambda: hand.create(f"{name}-b", 1, 1, {"no.such.config": "1"})),
        (BAD_REPLICATION, lambda: hand.create(f"{name}-c", 1, 4, {})),
        (BAD_PARTITIONS, lambda: hand.grow(name, 1)),
        (UNKNOWN_TOPIC, lambda: hand.grow(f"{name}-none", 3)),
        (BAD_CONFIG, lambda: hand.alter(name, {"segment.bytes": "many"}, legacy=True)),
        (UNKNOWN_TOPIC, lambda: hand.delete(f"{name}-none")),
    ]
    if hand.has_incremental:
        alter = (BAD_CONFIG, lambda: hand.alter(name, {"segment.bytes": "x"}, legacy=False))
        wrong.append(alter)
    codes = []
    for _, act in wrong:
        try:
            act()
            codes.append(0)
        except Exception as error:
            codes.append(code_of(client, error))
    assert codes == [code for code, _ in wrong]
    # Any broker may be asked, and one that has much to do learns of a topic later than others.
    assert becomes_true(lambda: {each for each in hand.names() if each.startswith(name)} == {name})
    assert becomes_true(lambda: hand.partitions(name) == 2)
