"""Cases of the cluster, its features and the versions of its APIs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case

SOFTWARE = {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1.0"}

API_VERSIONS = (
    Case("all APIs", SOFTWARE, {"errorCode": 0}),
    Case(
        "empty software name",
        {**SOFTWARE, "clientSoftwareName": ""},
        {"errorCode": 42, "apiKeys": []},
        range(3, 5),
    ),
    Case(
        "invalid software version",
        {**SOFTWARE, "clientSoftwareVersion": "-1"},
        {"errorCode": 42, "apiKeys": []},
        range(3, 5),
    ),
)

MISMATCHED = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
    "CONTROLLER"
)

THREE = [{"brokerId": broker, "rack": f"rack-{broker}"} for broker in (2, 3, 1)]

NOT_REQUESTED = -2147483648

DESCRIBE_CLUSTER = (
    Case(
        "brokers",
        {"endpointType": 1},
        {
            "errorCode": 0,
            "errorMessage": None,
            "endpointType": 1,
            "controllerId": 1,
            "brokers": THREE,
            "clusterAuthorizedOperations": NOT_REQUESTED,
        },
    ),
    Case(
        "authorized operations",
        {"includeClusterAuthorizedOperations": True, "endpointType": 1},
        {"clusterAuthorizedOperations": 8096},
    ),
    Case(
        "controllers",
        {"endpointType": 2},
        {"errorCode": 114, "errorMessage": MISMATCHED, "controllerId": -1, "brokers": []},
        range(1, 2),
    ),
    Case("unknown endpoint", {"endpointType": 9}, {"errorCode": 115}, range(1, 2)),
)


def update(name: str, level: int = 1, downgrade: bool = False, upgrade_type: int = 1) -> Any:
    """A request with one feature."""
    feature = {
        "feature": name,
        "maxVersionLevel": level,
        "allowDowngrade": downgrade,
        "upgradeType": upgrade_type,
    }
    return {"timeoutMs": 1_000, "featureUpdates": [feature]}


def updated(name: str, text: str) -> dict[str, Any]:
    """A response with an error for one feature."""
    return {
        "errorCode": 0,
        "errorMessage": None,
        "results": [{"feature": name, "errorCode": 42, "errorMessage": text}],
    }


UPDATE_FEATURES = (
    Case("empty request", {"timeoutMs": 1, "featureUpdates": []}, {"errorCode": 0, "results": []}),
    Case("empty feature name", update(""), updated("", "Feature name can not be empty.")),
    Case(
        "unknown feature",
        update("no-such"),
        updated(
            "no-such",
            "Could not apply finalized feature update because the provided feature is not "
            "supported.",
        ),
    ),
    Case(
        "deletion of an unknown feature",
        update("no-such", 0, True, 2),
        updated("no-such", "Can not delete non-existing finalized feature."),
    ),
)
