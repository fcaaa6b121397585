"""IncrementalAlterConfigs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Table, Topic

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TOPIC, BROKER_TYPE, LOGGER = 2, 4, 8
HERE = Topic(configs={"cleanup.policy": "compact", "retention.ms": "1000"})

Change = tuple[str, int, str | None]


def body(
    *changes: Change, name: str = "{topic}", kind: int = TOPIC, dry: bool = False
) -> dict[str, Any]:
    """A request of one resource."""
    return {"resources": [resource(*changes, name=name, kind=kind)], "validateOnly": dry}


def resource(*changes: Change, name: str = "{topic}", kind: int = TOPIC) -> dict[str, Any]:
    """A resource of a request."""
    return {
        "resourceType": kind,
        "resourceName": name,
        "configs": [
            {"name": key, "configOperation": operation, "value": value}
            for key, operation, value in changes
        ],
    }


def told(code: int, text: str | None, name: str = "{topic}", kind: int = TOPIC) -> dict[str, Any]:
    """An answer of one resource."""
    return {
        "responses": [
            {"errorCode": code, "errorMessage": text, "resourceType": kind, "resourceName": name}
        ]
    }


TABLE = Table(
    44,
    "3.6",
    (
        Case("set", body(("segment.bytes", SET, "1048576")), told(0, None), topic=HERE),
        Case("deleted", body(("retention.ms", DELETE, None)), told(0, None), topic=HERE),
        Case("appended", body(("cleanup.policy", APPEND, "delete")), told(0, None), topic=HERE),
        Case(
            "subtracted", body(("cleanup.policy", SUBTRACT, "compact")), told(0, None), topic=HERE
        ),
        Case("dry run", body(("segment.ms", SET, "1000"), dry=True), told(0, None), topic=HERE),
        Case("unknown key deleted", body(("no.such", DELETE, None)), told(0, None), topic=HERE),
        Case("no changes", body(), told(0, None), topic=HERE),
        Case("nothing asked", {"resources": [], "validateOnly": False}, {"responses": []}),
        Case(
            "unknown topic",
            body(("segment.ms", SET, "1"), name="none-{n}"),
            told(3, "The topic 'none-{n}' does not exist.", "none-{n}"),
        ),
        Case(
            "empty name",
            body(("segment.ms", SET, "1"), name=""),
            told(42, "Default topic resources are not allowed.", ""),
        ),
        Case(
            "unknown key set",
            body(("no.such", SET, "1")),
            told(40, "Unknown topic config name: no.such"),
            topic=HERE,
        ),
        Case("unknown key appended", body(("no.such", APPEND, "1")), told(-1, None), topic=HERE),
        Case("unknown operation", body(("segment.ms", 9, "1")), told(-1, None), topic=HERE),
        Case(
            "appended to a number",
            body(("segment.ms", APPEND, "1")),
            told(40, "Config value append is not allowed for config key: segment.ms"),
            topic=HERE,
        ),
        Case(
            "subtracted from a number",
            body(("segment.ms", SUBTRACT, "1")),
            told(40, "Config value subtract is not allowed for config key: segment.ms"),
            topic=HERE,
        ),
        Case(
            "bad value",
            body(("segment.bytes", SET, "x")),
            told(
                40,
                "Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): "
                "Invalid value x for configuration segment.bytes: Not a number of type INT",
            ),
            topic=HERE,
        ),
        Case(
            "null value",
            body(("segment.ms", SET, None)),
            told(42, "Null value not supported for : segment.ms"),
            topic=HERE,
        ),
        Case(
            "key twice",
            body(("segment.ms", SET, "1"), ("segment.ms", SET, "2")),
            told(42, "Error due to duplicate config keys"),
            topic=HERE,
        ),
        Case(
            "resource twice",
            {"resources": [resource(("segment.ms", SET, "1"))] * 2, "validateOnly": False},
            {
                "responses": [
                    {"errorCode": 42, "errorMessage": "Each resource must appear at most once."}
                ]
                * 2
            },
            topic=HERE,
        ),
        Case(
            "broker without a number",
            body(name="x", kind=BROKER_TYPE),
            told(42, "Node id must be an integer, but it is: x", "x", BROKER_TYPE),
        ),
        Case(
            "unknown type", body(name="x", kind=77), told(42, "Unknown resource type 77", "x", 77)
        ),
        Case(
            "one good, one bad",
            {
                "resources": [
                    resource(("segment.ms", SET, "1000")),
                    resource(("segment.ms", SET, "1"), name="none-{n}"),
                ],
                "validateOnly": False,
            },
            {"responses": [{"errorCode": 0, "errorMessage": None}, {"errorCode": 3}]},
            topic=HERE,
        ),
    ),
)
