"""DescribeConfigs."""

from __future__ import annotations

from typing import Any

from tests.integration.conformance.case import Case, Topic

TOPIC, BROKER_TYPE, LOGGER, CLIENT_METRICS = 2, 4, 8, 16
HERE = Topic(configs={"retention.ms": "1000", "cleanup.policy": "compact"})


def body(
    name: str = "{topic}",
    keys: list[str] | None = None,
    kind: int = TOPIC,
    synonyms: bool = False,
    documentation: bool = False,
) -> dict[str, Any]:
    """A request with one resource."""
    return {
        "resources": [{"resourceType": kind, "resourceName": name, "configurationKeys": keys}],
        "includeSynonyms": synonyms,
        "includeDocumentation": documentation,
    }


def result(
    code: int, text: str | None, name: str = "{topic}", kind: int = TOPIC, **more: Any
) -> dict[str, Any]:
    """A response with one resource."""
    result = {"errorCode": code, "errorMessage": text, "resourceType": kind, "resourceName": name}
    return {"results": [{**result, **more}]}


RETENTION = {
    "name": "retention.ms",
    "value": "1000",
    "readOnly": False,
    "isDefault": False,
    "configSource": 1,
    "isSensitive": False,
    "synonyms": [],
    "configType": 5,
    "documentation": None,
}
INVALID = "This most likely occurs because of a request being malformed by the client library…"

CASES = (
    Case("all configs", body(), result(0, ""), topic=HERE),
    Case("one config", body(keys=["retention.ms"]), result(0, "", configs=[RETENTION]), topic=HERE),
    Case(
        "with synonyms",
        body(keys=["cleanup.policy"], synonyms=True),
        result(
            0,
            "",
            configs=[
                {
                    "name": "cleanup.policy",
                    "value": "compact",
                    "synonyms": [
                        {"name": "cleanup.policy", "value": "compact", "source": 1},
                        {"name": "log.cleanup.policy", "value": "delete", "source": 5},
                    ],
                    "configType": 7,
                }
            ],
        ),
        range(1, 5),
        HERE,
    ),
    Case("with documentation", body(documentation=True), result(0, ""), range(3, 5), HERE),
    Case("empty list of keys", body(keys=[]), result(0, ""), topic=HERE),
    Case("unknown key", body(keys=["no.such"]), result(0, "", configs=[]), topic=HERE),
    Case("empty request", {"resources": []}, {"results": []}),
    Case("unknown topic", body("none-{n}"), result(3, "", "none-{n}", configs=[])),
    Case("illegal name", body("a/b"), result(17, "Topic name is invalid: 'a/b' contains…", "a/b")),
    Case("default of all brokers", body("", kind=BROKER_TYPE), result(0, "", "", BROKER_TYPE)),
    Case(
        "broker name is not a number",
        body("x", kind=BROKER_TYPE),
        result(42, "Broker id must be an integer, but it is: x", "x", BROKER_TYPE),
    ),
    Case(
        "logger without a broker",
        body("", kind=LOGGER),
        result(42, "Broker id must not be empty", "", LOGGER),
    ),
    Case(
        "client metrics",
        body("m", kind=CLIENT_METRICS),
        result(
            42,
            "Config type client-metrics is only supported on KRaft clusters",
            "m",
            CLIENT_METRICS,
        ),
    ),
    Case(
        "client metrics without a name",
        body("", kind=CLIENT_METRICS),
        result(42, "Client metrics subscription name must not be empty", "", CLIENT_METRICS),
    ),
    Case("unknown type", body("x", kind=55), result(42, INVALID, "x", 55)),
)
