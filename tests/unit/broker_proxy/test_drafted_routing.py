"""The route of each API version on a listener of the dialect `drafted` (KIP-590, KIP-4)."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.apis import DRAFTED_SPECS, Route
from broker_proxy.requests.routing import ROUTING_TABLES, SHIPPED, choose_route

DRAFTED = ROUTING_TABLES["drafted"]
FORWARD, LOCAL, NOT_CONTROLLER = Route.FORWARD, Route.LOCAL, Route.NOT_CONTROLLER
# The list in KIP-590 §Protocol Bumps.
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
LIST_ACLS = 10002
OF_THE_CONTROLLER = [key for key, route in DRAFTED.items() if route is FORWARD]


def route_of(key: int, version: int, *, controller: bool, forwards: bool = True) -> Route | None:
    return choose_route(
        key,
        version,
        dialect="drafted",
        forwarding_enabled=forwards,
        broker_is_controller=controller,
    )


def test_the_version_bumps_equal_the_list_in_kip_590() -> None:
    bumped = [spec for spec in DRAFTED_SPECS.values() if spec.forwarded_below is not None]
    assert {spec.name: spec.forwarded_below for spec in bumped} == BUMPED
    assert all(spec.max_version == spec.forwarded_below for spec in bumped)


@pytest.mark.parametrize("key", OF_THE_CONTROLLER)
def test_bumped_versions_get_not_controller_and_older_ones_are_forwarded(key: int) -> None:
    """KIP-590 bumps eight APIs. No version of any other write API is forwarded (KIP-4)."""
    bump = DRAFTED_SPECS[key].forwarded_below or 0
    for version in DRAFTED_SPECS[key].versions:
        elsewhere = route_of(key, version, controller=False)
        assert elsewhere is (FORWARD if version < bump else NOT_CONTROLLER)
        assert route_of(key, version, controller=True) is FORWARD
        assert route_of(key, version, controller=False, forwards=False) is NOT_CONTROLLER


def test_apis_that_are_local_in_the_shipped_dialect_are_local_in_the_drafted_one() -> None:
    assert set(SHIPPED) <= set(DRAFTED)
    for key, route in SHIPPED.items():
        assert DRAFTED[key] is route
        if route is LOCAL:
            assert route_of(key, 0, controller=False) is LOCAL


def test_list_acls_is_local() -> None:
    """KIP-4: ListAcls can be sent to any broker."""
    for controller in (False, True):
        assert route_of(LIST_ACLS, 0, controller=controller) is LOCAL


def test_an_envelope_from_a_client_is_not_forwarded() -> None:
    assert route_of(58, 0, controller=False) is LOCAL
