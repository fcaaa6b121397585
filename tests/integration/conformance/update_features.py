"""UpdateFeatures."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case


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


CASES = (
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
