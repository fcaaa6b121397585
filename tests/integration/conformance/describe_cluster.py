"""DescribeCluster."""

from __future__ import annotations

from tests.integration.conformance.case import Case

MISMATCHED = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
    "CONTROLLER"
)
THREE = [{"brokerId": broker, "rack": f"rack-{broker}"} for broker in (2, 3, 1)]
NOT_REQUESTED = -2147483648
CASES = (
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
