"""Cases of groups and their coordinators."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import ALL, Case

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


FIND_COORDINATOR = (
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

LIST_GROUPS = (
    Case("all groups", {}, {"errorCode": 0, "groups": []}),
    Case("filtered by state", {"statesFilter": ["Stable"]}, {"errorCode": 0, "groups": []}, ALL),
    Case("unknown state", {"statesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
    Case("unknown type", {"typesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
)

DEAD = {
    "groupId": "{mine}",
    "errorCode": 0,
    "groupState": "Dead",
    "protocolType": "",
    "protocolData": "",
    "members": [],
    "authorizedOperations": -2147483648,
}

DESCRIBE_GROUPS = (
    Case("empty request", {"groups": []}, {"groups": []}),
    Case(
        "unknown groups",
        {"groups": ["{mine}", "{other}", "{mine}"]},
        {"groups": [DEAD, {**DEAD, "groupId": "{other}", "errorCode": 16, "groupState": ""}, DEAD]},
    ),
    Case(
        "authorized operations",
        {"groups": ["{mine}", "{other}"], "includeAuthorizedOperations": True},
        {"groups": [{"authorizedOperations": 328}, {"authorizedOperations": -2147483648}]},
        range(3, 6),
    ),
)

CONSUMER_GROUP_DESCRIBE = (
    Case(
        "groups",
        {"groupIds": ["g", ""]},
        {
            "groups": [
                {"groupId": group, "errorCode": 35, "errorMessage": None, "members": []}
                for group in ("g", "")
            ]
        },
    ),
    Case("empty request", {"groupIds": []}, {"groups": []}),
)

CONSUMER_GROUP_HEARTBEAT = (
    Case("heartbeat", {"groupId": "g", "memberId": "m"}, {"errorCode": 35, "errorMessage": None}),
)

DELETE_GROUPS = (
    Case("empty request", {"groupsNames": []}, {"results": []}),
    Case(
        "unknown groups",
        {"groupsNames": ["{mine}", "{other}", "{mine}"]},
        {
            "results": [
                {"groupId": "{mine}", "errorCode": 69},
                {"groupId": "{other}", "errorCode": 16},
            ]
        },
    ),
)

REQUESTED = [{"name": "t", "partitionIndexes": [0, 7]}]


def offsets(code: int) -> list[dict[str, Any]]:
    """The results of the requested partitions."""
    partitions = [
        {
            "partitionIndex": index,
            "committedOffset": -1,
            "committedLeaderEpoch": -1,
            "metadata": "",
            "errorCode": code,
        }
        for index in (0, 7)
    ]
    return [{"name": "t", "partitions": partitions}]


def of_groups(*groups: str) -> dict[str, Any]:
    """A request with several groups."""
    return {"groups": [{"groupId": group, "topics": REQUESTED} for group in groups]}


OFFSET_FETCH = (
    Case(
        "offsets in ZooKeeper",
        {"groupId": "g", "topics": REQUESTED},
        {"topics": offsets(3)},
        range(1),
    ),
    Case("no topics in ZooKeeper", {"groupId": "g", "topics": []}, {"topics": []}, range(1)),
    Case(
        "unknown group",
        {"groupId": "{mine}", "topics": REQUESTED},
        {"topics": offsets(0), "errorCode": 0},
        range(1, 8),
    ),
    Case(
        "another coordinator",
        {"groupId": "{other}", "topics": REQUESTED},
        {"topics": [], "errorCode": 16},
        range(1, 8),
    ),
    Case(
        "all committed offsets",
        {"groupId": "{mine}", "topics": None},
        {"topics": [], "errorCode": 0},
        range(2, 8),
    ),
    Case("no groups", {"groups": []}, {"groups": []}, range(8, 10)),
    Case(
        "two groups",
        of_groups("{mine}", "{other}"),
        {
            "groups": [
                {"groupId": "{mine}", "topics": offsets(0), "errorCode": 0},
                {"groupId": "{other}", "topics": [], "errorCode": 16},
            ]
        },
        range(8, 10),
    ),
)

OFFSET_DELETE = (
    Case("empty group id", {"groupId": ""}, {"errorCode": 24, "topics": []}),
    Case("unknown group", {"groupId": "{mine}"}, {"errorCode": 69, "topics": []}),
    Case("another coordinator", {"groupId": "{other}"}, {"errorCode": 16, "topics": []}),
    Case(
        "with topics",
        {"groupId": "{mine}", "topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]},
        {"errorCode": 69, "topics": []},
    ),
)
