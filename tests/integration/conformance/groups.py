"""FindCoordinator and what coordinators answer of groups that nobody has met."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.case import ALL, Case, Table

INVALID: Final = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
OLD, NEW = range(4), range(4, 7)
NOBODY = {"nodeId": -1, "host": "", "port": -1}


def keys(*names: str, kind: int = 0) -> dict[str, Any]:
    """A request of one key, or of many where the version has room."""
    return {"key": names[0] if names else "", "keyType": kind, "coordinatorKeys": list(names)}


def whole(code: int, text: str) -> dict[str, Any]:
    """The answer of the older versions when there is no coordinator."""
    return {**NOBODY, "errorCode": code, "errorMessage": text}


def each(code: int, text: str, *names: str) -> dict[str, Any]:
    """The answer of the newer ones."""
    nobody = {**NOBODY, "errorCode": code, "errorMessage": text}
    return {"coordinators": [{"key": name, **nobody} for name in names]}


FIND_COORDINATOR = Table(
    10,
    "3.19",
    (
        Case(
            "found",
            keys("coordinated-g"),
            {"errorCode": 0, "errorMessage": "NONE", "nodeId": 1},
            OLD,
        ),
        Case(
            "of a transaction",
            keys("coordinated-h", kind=1),
            {"errorCode": 0, "nodeId": 2},
            range(1, 4),
        ),
        Case(
            "all found",
            keys("g", "h", "g"),
            {
                "coordinators": [
                    {
                        "key": key,
                        "nodeId": node,
                        "errorCode": 0,
                        "errorMessage": "",
                    }
                    for key, node in (("g", 2), ("h", 1), ("g", 2))
                ]
            },
            NEW,
        ),
        Case("none asked", keys(), {"coordinators": []}, NEW),
        Case("empty group", keys(""), {"errorCode": 0, "coordinators": [{"errorCode": 0}]}),
        Case("unknown type", keys("g", kind=9), whole(42, INVALID), range(1, 4)),
        Case("unknown type of many", keys("g", "h", kind=9), each(42, INVALID, "g", "h"), NEW),
        Case("negative type", keys("g", kind=-1), each(42, INVALID, "g"), NEW),
        Case("share group too early", keys("g", kind=2), whole(42, INVALID), range(1, 4)),
        Case("share group still too early", keys("g", kind=2), each(42, "", "g"), range(4, 6)),
        Case("share group", keys("g", kind=2), each(15, "", "g"), range(6, 7)),
    ),
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
DESCRIBE_GROUPS = Table(
    15,
    "3.20",
    (
        Case("none asked", {"groups": []}, {"groups": []}),
        Case(
            "not met",
            {"groups": ["{mine}", "{other}", "{mine}"]},
            {
                "groups": [
                    DEAD,
                    {**DEAD, "groupId": "{other}", "errorCode": 16, "groupState": ""},
                    DEAD,
                ]
            },
        ),
        Case(
            "operations",
            {"groups": ["{mine}", "{other}"], "includeAuthorizedOperations": True},
            {"groups": [{"authorizedOperations": 328}, {"authorizedOperations": -2147483648}]},
            range(3, 6),
        ),
    ),
)
LIST_GROUPS = Table(
    16,
    "3.20",
    (
        Case("all", {}, {"errorCode": 0, "groups": []}),
        Case("filtered", {"statesFilter": ["Stable"]}, {"errorCode": 0, "groups": []}, ALL),
        Case("unknown state", {"statesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
        Case("unknown type", {"typesFilter": ["bogus"]}, {"errorCode": 0, "groups": []}),
    ),
)
DELETE_GROUPS = Table(
    42,
    "3.20",
    (
        Case("none asked", {"groupsNames": []}, {"results": []}),
        Case(
            "not met",
            {"groupsNames": ["{mine}", "{other}", "{mine}"]},
            {
                "results": [
                    {"groupId": "{mine}", "errorCode": 69},
                    {"groupId": "{other}", "errorCode": 16},
                ]
            },
        ),
    ),
)
OFFSET_DELETE = Table(
    47,
    "3.20",
    (
        Case("empty group", {"groupId": ""}, {"errorCode": 24, "topics": []}),
        Case("not met", {"groupId": "{mine}"}, {"errorCode": 69, "topics": []}),
        Case("elsewhere", {"groupId": "{other}"}, {"errorCode": 16, "topics": []}),
        Case(
            "with topics",
            {"groupId": "{mine}", "topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]},
            {"errorCode": 69, "topics": []},
        ),
    ),
)
ASKED = [{"name": "t", "partitionIndexes": [0, 7]}]


def offsets(code: int) -> list[dict[str, Any]]:
    """What is told of the partitions asked for."""
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
    """A request of the versions that ask for many."""
    return {"groups": [{"groupId": group, "topics": ASKED} for group in groups]}


OFFSET_FETCH = Table(
    9,
    "3.20",
    (
        Case("of ZooKeeper", {"groupId": "g", "topics": ASKED}, {"topics": offsets(3)}, range(1)),
        Case("no topics", {"groupId": "g", "topics": []}, {"topics": []}, range(1)),
        Case(
            "not met",
            {"groupId": "{mine}", "topics": ASKED},
            {"topics": offsets(0), "errorCode": 0},
            range(1, 8),
        ),
        Case(
            "elsewhere",
            {"groupId": "{other}", "topics": ASKED},
            {"topics": [], "errorCode": 16},
            range(1, 8),
        ),
        Case(
            "all that is committed",
            {"groupId": "{mine}", "topics": None},
            {"topics": [], "errorCode": 0},
            range(2, 8),
        ),
        Case("no groups", {"groups": []}, {"groups": []}, range(8, 10)),
        Case(
            "many groups",
            of_groups("{mine}", "{other}"),
            {
                "groups": [
                    {"groupId": "{mine}", "topics": offsets(0), "errorCode": 0},
                    {"groupId": "{other}", "topics": [], "errorCode": 16},
                ]
            },
            range(8, 10),
        ),
    ),
)
CONSUMER_GROUP_HEARTBEAT = Table(
    68,
    "3.14",
    (Case("beat", {"groupId": "g", "memberId": "m"}, {"errorCode": 35, "errorMessage": None}),),
)
CONSUMER_GROUP_DESCRIBE = Table(
    69,
    "3.14",
    (
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
        Case("none asked", {"groupIds": []}, {"groups": []}),
    ),
)
TABLES: Final = (
    FIND_COORDINATOR,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    DELETE_GROUPS,
    OFFSET_DELETE,
    OFFSET_FETCH,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
)
