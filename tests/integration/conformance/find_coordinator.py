"""FindCoordinator."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import Case

INVALID: Final = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
OLD, NEW = range(4), range(4, 7)
NO_COORDINATOR = {"nodeId": -1, "host": "", "port": -1}


def keys(*names: str, kind: int = 0) -> dict[str, Any]:
    """A request. Versions up to 3 send only the first key."""
    return {"key": names[0] if names else "", "keyType": kind, "coordinatorKeys": list(names)}


def whole(code: int, text: str) -> dict[str, Any]:
    """The response of versions up to 3 when there is no coordinator."""
    return {**NO_COORDINATOR, "errorCode": code, "errorMessage": text}


def keys_failed(code: int, text: str, *names: str) -> dict[str, Any]:
    """The response of later versions when no key has a coordinator."""
    unknown = {**NO_COORDINATOR, "errorCode": code, "errorMessage": text}
    return {"coordinators": [{"key": name, **unknown} for name in names]}


CASES = (
    Case(
        "group", keys("coordinated-g"), {"errorCode": 0, "errorMessage": "NONE", "nodeId": 1}, OLD
    ),
    Case(
        "transaction",
        keys("coordinated-h", kind=1),
        {"errorCode": 0, "nodeId": 2},
        range(1, 4),
    ),
    Case(
        "several groups",
        keys("g", "h", "g"),
        {
            "coordinators": [
                {"key": key, "nodeId": node, "errorCode": 0, "errorMessage": ""}
                for key, node in (("g", 2), ("h", 1), ("g", 2))
            ]
        },
        NEW,
    ),
    Case("empty request", keys(), {"coordinators": []}, NEW),
    Case("empty group", keys(""), {"errorCode": 0, "coordinators": [{"errorCode": 0}]}),
    Case("unknown key type", keys("g", kind=9), whole(42, INVALID), range(1, 4)),
    Case(
        "unknown key type of several keys",
        keys("g", "h", kind=9),
        keys_failed(42, INVALID, "g", "h"),
        NEW,
    ),
    Case("negative key type", keys("g", kind=-1), keys_failed(42, INVALID, "g"), NEW),
    Case("share group in versions 1 to 3", keys("g", kind=2), whole(42, INVALID), range(1, 4)),
    Case(
        "share group in versions 4 and 5",
        keys("g", kind=2),
        keys_failed(42, "", "g"),
        range(4, 6),
    ),
    Case("share group", keys("g", kind=2), keys_failed(15, "", "g"), range(6, 7)),
)
