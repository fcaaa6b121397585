"""IncrementalAlterConfigs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TOPIC, BROKER_TYPE, LOGGER = 2, 4, 8
HERE = Topic(configs={"cleanup.policy": "compact", "retention.ms": "1000"})

Change = tuple[str, int, str | None]


def body(
    *changes: Change, name: str = "{topic}", kind: int = TOPIC, dry: bool = False
) -> dict[str, Any]:
    """A request with one resource."""
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


def result(code: int, text: str | None, name: str = "{topic}", kind: int = TOPIC) -> dict[str, Any]:
    """A response with one resource."""
    return {
        "responses": [
            {"errorCode": code, "errorMessage": text, "resourceType": kind, "resourceName": name}
        ]
    }


CASES = (
    Case("set", body(("segment.bytes", SET, "1048576")), result(0, None), topic=HERE),
    Case("deleted", body(("retention.ms", DELETE, None)), result(0, None), topic=HERE),
    Case("appended", body(("cleanup.policy", APPEND, "delete")), result(0, None), topic=HERE),
    Case("subtracted", body(("cleanup.policy", SUBTRACT, "compact")), result(0, None), topic=HERE),
    Case("dry run", body(("segment.ms", SET, "1000"), dry=True), result(0, None), topic=HERE),
    Case("unknown key deleted", body(("no.such", DELETE, None)), result(0, None), topic=HERE),
    Case("no changes", body(), result(0, None), topic=HERE),
    Case("empty request", {"resources": [], "validateOnly": False}, {"responses": []}),
    Case(
        "unknown topic",
        body(("segment.ms", SET, "1"), name="none-{n}"),
        result(3, "The topic 'none-{n}' does not exist.", "none-{n}"),
    ),
    Case(
        "empty name",
        body(("segment.ms", SET, "1"), name=""),
        result(42, "Default topic resources are not allowed.", ""),
    ),
    Case(
        "unknown key set",
        body(("no.such", SET, "1")),
        result(40, "Unknown topic config name: no.such"),
        topic=HERE,
    ),
    Case("unknown key appended", body(("no.such", APPEND, "1")), result(-1, None), topic=HERE),
    Case("unknown operation", body(("segment.ms", 9, "1")), result(-1, None), topic=HERE),
    Case(
        "appended to a number",
        body(("segment.ms", APPEND, "1")),
        result(40, "Config value append is not allowed for config key: segment.ms"),
        topic=HERE,
    ),
    Case(
        "subtracted from a number",
        body(("segment.ms", SUBTRACT, "1")),
        result(40, "Config value subtract is not allowed for config key: segment.ms"),
        topic=HERE,
    ),
    Case(
        "bad value",
        body(("segment.bytes", SET, "x")),
        result(
            40,
            "Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): "
            "Invalid value x for configuration segment.bytes: Not a number of type INT",
        ),
        topic=HERE,
    ),
    Case(
        "null value",
        body(("segment.ms", SET, None)),
        result(42, "Null value not supported for : segment.ms"),
        topic=HERE,
    ),
    Case(
        "duplicate key",
        body(("segment.ms", SET, "1"), ("segment.ms", SET, "2")),
        result(42, "Error due to duplicate config keys"),
        topic=HERE,
    ),
    Case(
        "duplicate resource",
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
        "broker name is not a number",
        body(name="x", kind=BROKER_TYPE),
        result(42, "Node id must be an integer, but it is: x", "x", BROKER_TYPE),
    ),
    Case("unknown type", body(name="x", kind=77), result(42, "Unknown resource type 77", "x", 77)),
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
)
