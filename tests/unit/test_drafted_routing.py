"""KIP-590's routing by versions, and KIP-4's: what a drafted listener forwards."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from broker_proxy.routing import DRAFTED, FORWARDED_BELOW, SHIPPED, Route, route

FORWARD, LOCAL, NOT_CONTROLLER = Route.FORWARD, Route.LOCAL, Route.NOT_CONTROLLER
# KIP-590 §Protocol Bumps, literally.
BUMPED = {
    "AlterConfigs": 2,
    "IncrementalAlterConfigs": 2,
    "CreateAcls": 3,
    "DeleteAcls": 3,
    "AlterClientQuotas": 1,
    "CreateDelegationToken": 3,
    "RenewDelegationToken": 3,
    "ExpireDelegationToken": 3,
}
OF_THE_CONTROLLER = [key for key, way in DRAFTED.items() if way is FORWARD]


def way_of(key: int, version: int, *, controller: bool, forwards: bool = True) -> Route | None:
    return route(
        key,
        version,
        dialect="drafted",
        forwarding_enabled=forwards,
        broker_is_controller=controller,
    )


def test_the_bumps_are_the_kips() -> None:
    """By name, and each is the newest version that the dialect has."""
    assert {DRAFTED_SPECS[key].name: v for key, v in FORWARDED_BELOW.items()} == BUMPED
    assert {DRAFTED_SPECS[key].max_version - v for key, v in FORWARDED_BELOW.items()} == {0}


@pytest.mark.parametrize("key", OF_THE_CONTROLLER)
def test_a_bumped_version_must_ask_the_controller_and_older_ones_are_forwarded(key: int) -> None:
    """Of KIP-590's eight; of every other API no version is forwarded (KIP-4)."""
    bump = FORWARDED_BELOW.get(key, 0)
    for version in DRAFTED_SPECS[key].versions:
        away = way_of(key, version, controller=False)
        assert away is (FORWARD if version < bump else NOT_CONTROLLER)
        assert way_of(key, version, controller=True) is FORWARD
        assert way_of(key, version, controller=False, forwards=False) is NOT_CONTROLLER


def test_what_any_broker_answers_it_answers_in_both_dialects() -> None:
    """And nothing that shipped is missing."""
    assert set(SHIPPED) <= set(DRAFTED)
    for key, way in SHIPPED.items():
        assert DRAFTED[key] is way
        if way is LOCAL:
            assert way_of(key, 0, controller=False) is LOCAL


def test_an_envelope_is_answered_where_it_arrives() -> None:
    """Whoever is controller."""
    assert way_of(58, 0, controller=False) is LOCAL
