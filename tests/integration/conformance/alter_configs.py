"""AlterConfigs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

TOPIC, BROKER_TYPE, LOGGER, CLIENT_METRICS = 2, 4, 8, 16
HERE = Topic(configs={"retention.ms": "1000"})


def body(
    name: str | int = "{topic}", kind: int = TOPIC, dry: bool = False, **configs: str | None
) -> dict[str, Any]:
    """A request with one resource."""
    return {
        "resources": [
            {
                "resourceType": kind,
                "resourceName": name,
                "configs": [
                    {"name": key.replace("_", "."), "value": value}
                    for key, value in configs.items()
                ],
            }
        ],
        "validateOnly": dry,
    }


def result(code: int, text: str | None, name: str = "{topic}", kind: int = TOPIC) -> dict[str, Any]:
    """A response with one resource."""
    return {
        "responses": [
            {"errorCode": code, "errorMessage": text, "resourceType": kind, "resourceName": name}
        ]
    }


CASES = (
    Case("altered", body(segment_bytes="1048576"), result(0, None), topic=HERE),
    Case("without configs", body(), result(0, None), topic=HERE),
    Case("dry run", body(segment_bytes="1048576", dry=True), result(0, None), topic=HERE),
    Case("empty request", {"resources": [], "validateOnly": False}, {"responses": []}),
    Case(
        "unknown topic",
        body("none-{n}", retention_ms="1"),
        result(3, "The topic 'none-{n}' does not exist.", "none-{n}"),
    ),
    Case(
        "empty name",
        body("", retention_ms="1"),
        result(42, "Default topic resources are not allowed.", ""),
    ),
    Case(
        "unknown config",
        body(no_such_thing="1"),
        result(40, "Unknown topic config name: no.such.thing"),
        topic=HERE,
    ),
    Case(
        "bad value",
        body(segment_bytes="-1"),
        result(
            40,
            "Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): "
            "Invalid value -1 for configuration segment.bytes: Value must be at least 14",
        ),
        topic=HERE,
    ),
    Case(
        "null value",
        body(segment_bytes=None),
        result(42, "Null value not supported for : segment.bytes"),
        topic=HERE,
    ),
    Case(
        "duplicate key",
        {
            "resources": [
                {
                    "resourceType": TOPIC,
                    "resourceName": "{topic}",
                    "configs": [{"name": "segment.ms", "value": value} for value in "12"],
                }
            ],
            "validateOnly": False,
        },
        result(42, "Error due to duplicate config keys"),
        topic=HERE,
    ),
    Case("unknown type", body("x", 77, a="1"), result(42, "Unknown resource type 77", "x", 77)),
    Case("logger", body("1", LOGGER, a="1"), result(42, "Unknown resource type 8", "1", LOGGER)),
    Case(
        "client metrics",
        body("m", CLIENT_METRICS, a="1"),
        result(
            42,
            "AlterConfigs is only supported for topics and brokers, but resource type is "
            "CLIENT_METRICS",
            "m",
            CLIENT_METRICS,
        ),
    ),
    Case(
        "broker name is not a number",
        body("x", BROKER_TYPE),
        result(42, "Node id must be an integer, but it is: x", "x", BROKER_TYPE),
    ),
    Case(
        "one good, one bad",
        {
            "resources": [
                *body(segment_ms="1000")["resources"],
                *body("none-{n}", segment_ms="1000")["resources"],
            ],
            "validateOnly": False,
        },
        {"responses": [{"errorCode": 0}, {"errorCode": 3, "resourceName": "none-{n}"}]},
        topic=HERE,
    ),
)
