"""docs/apis.md is true: its rights are those that the code asks, its errors those it can give."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any, Final, get_args

import pytest

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.left_out import LEFT_OUT
from broker_proxy.routing import DIALECTS
from docs.api_facts import ALWAYS, API_FACTS, DENIED
from docs.generate import pages
from tests.unit.reachable_code import ROOT, rights_and_errors

SERVED: Final = {key: way for table in DIALECTS.values() for key, way in table.items()}
# Answered before any API is asked: by the login of a connection.
OF_THE_LOGIN: Final = (17, 36)

# Named in the code, and told to nobody: what the broker asks for itself on the way.
UNTOLD: Final = {
    10: {
        "LEADER_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "TOPIC_ALREADY_EXISTS",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
}


def possible(key: int) -> set[str]:
    """Every error that the page says an API can give."""
    facts = API_FACTS[key]
    denied = {DENIED[kind] for _, kind in facts.rights if DENIED[kind] in facts.denied}
    return {*facts.errors, *denied, *ALWAYS[SERVED[key]]}


@pytest.mark.parametrize("key", sorted(SERVED))
def test_the_rights_of_an_api_are_those_that_its_code_asks(key: int) -> None:
    rights, _ = rights_and_errors(key)
    assert set(API_FACTS[key].rights) == rights


@pytest.mark.parametrize("key", sorted(set(SERVED) - set(OF_THE_LOGIN)))
def test_the_errors_of_an_api_are_those_that_its_code_names(key: int) -> None:
    """Neither more nor fewer, but for those that stand in front of every API."""
    _, named = rights_and_errors(key)
    given_elsewhere = {"THROTTLING_QUOTA_EXCEEDED", "POLICY_VIOLATION", *ALWAYS[SERVED[key]]}
    given_elsewhere |= {"UNSUPPORTED_VERSION"} if key == 18 else set()
    assert possible(key) - named <= given_elsewhere
    told = {name for name in named if name in possible(key)}
    assert named - told <= UNTOLD.get(key, set()) | {"NONE"}


def recorded_errors() -> Iterator[tuple[int, str]]:
    """Yield API and name of every error in the recordings of a real Kafka."""
    keys = {spec.enum_name: key for key, spec in API_SPECS.items()}
    for file in sorted((ROOT / "tests" / "recordings").glob("[df]*.jsonl.gz")):
        lines = gzip.decompress(file.read_bytes()).splitlines()
        for line in lines:
            for step in json.loads(line)["steps"]:
                if step.get("api") in keys and "response" in step:
                    for code in codes(step["response"]):
                        yield keys[step["api"]], ErrorCode(code).name


def codes(value: Any) -> Iterator[int]:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from codes(item)
    if isinstance(value, dict):
        yield from (code for key, code in value.items() if key.lower().endswith("errorcode"))


def test_every_error_that_a_real_kafka_gave_is_one_that_the_page_names() -> None:
    """Whatever it answered to the recorded cases, of the APIs that are served."""
    shipped = DIALECTS["shipped"]
    seen = {pair for pair in recorded_errors() if pair[0] in shipped and pair[1] != "NONE"}
    assert len(seen) > 60
    assert {(key, name) for key, name in seen if name not in possible(key)} == set()


def test_the_words_are_kafkas() -> None:
    for facts in API_FACTS.values():
        for operation, kind in facts.rights:
            assert operation in get_args(Operation)
            assert kind in get_args(ResourceType)
        assert all(name in ErrorCode.__members__ for name in facts.errors)


def test_every_api_of_a_zookeeper_broker_is_served_or_left_out_with_its_reason() -> None:
    page = pages()["apis.md"]
    for key, spec in API_SPECS.items():
        assert (key in DIALECTS["shipped"]) != (key in LEFT_OUT), spec.name
        assert f"| `{spec.name}` | {key} |" in page
