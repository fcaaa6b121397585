"""Routes requests by the table of all APIs. KIP-590 §Proposed Changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, SPECS, Route
from cluster_model.direct_writes import WRITTEN_BY_BROKERS

RoutingTable = Mapping[str, Mapping[int, Route]]  # by dialect and API key


def _routes(*, data_plane: bool) -> RoutingTable:
    return {
        dialect: {
            key: spec.route
            for key, spec in specs.items()
            if spec.route is not None and (data_plane or not spec.needs_data_plane)
        }
        for dialect, specs in SPECS.items()
    }


# The APIs that each dialect (shipped, drafted) serves. ApiVersions advertises no others.
ROUTING_TABLES: Final[RoutingTable] = _routes(data_plane=True)
WITHOUT_DATA_PLANE: Final[RoutingTable] = _routes(data_plane=False)
SHIPPED: Final = ROUTING_TABLES["shipped"]
_OF_KRAFT: Final = (ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA)


def with_kraft_requests(routes: RoutingTable) -> RoutingTable:
    """Return the routes of a broker that migrates: it serves the KRaft controller's requests."""
    return {
        dialect: {**table, **dict.fromkeys(_OF_KRAFT, Route.LOCAL)}
        for dialect, table in routes.items()
    }


def choose_route(
    api_key: int,
    api_version: int,
    *,
    dialect: str,
    forwarding_enabled: bool,
    broker_is_controller: bool,
    writes_itself: bool = False,
    routes: RoutingTable = ROUTING_TABLES,
) -> Route | None:
    """Return where a request goes; None if this broker does not serve the API.

    The active controller's own broker forwards within the process. Without forwarding, a client
    must find the active controller itself, as before KIP-590. With `writes_itself` this broker is
    below KIP-590's bridge release: it writes configs, quotas, ACLs and tokens itself, even if it is
    the active controller.
    """
    route = routes[dialect].get(api_key)
    if route is Route.ON_CONTROLLER:
        return Route.FORWARD if broker_is_controller else Route.NOT_CONTROLLER
    if writes_itself and api_key in WRITTEN_BY_BROKERS:
        return Route.DIRECT
    if route is not Route.FORWARD or broker_is_controller:
        return route
    if dialect == "drafted" and api_version >= (DRAFTED_SPECS[api_key].forwarded_below or 0):
        return Route.NOT_CONTROLLER
    return route if forwarding_enabled else Route.NOT_CONTROLLER
