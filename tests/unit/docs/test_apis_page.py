"""docs/apis.md has the rights that the code checks and the errors that Kafka returns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.kafka_wire.apis import API_SPECS, DRAFTED_SPECS, UNSERVED
from bridgehead.kafka_wire.errors import ErrorCode
from tools.generate import apis_page, possible_errors
from tools.reachable_code import ROOT, rights_and_errors

SERVED = [spec for spec in DRAFTED_SPECS.values() if spec.route is not None]
EVERY_RIGHT = ("ALL", "CLUSTER")  # the code checks each operation that ALL stands for


@pytest.mark.parametrize("spec", SERVED, ids=lambda spec: spec.name)
def test_rights_of_an_api_equal_the_rights_that_its_code_checks(spec: Any) -> None:
    rights, _ = rights_and_errors(spec.key)
    assert {*spec.rights, *spec.rights_to_see} - {EVERY_RIGHT} == rights


def recorded_errors() -> Iterator[tuple[int, str]]:
    """Yield key and error name of every error in the recordings of a real Kafka."""
    keys = {spec.enum_name: key for key, spec in API_SPECS.items()}
    for file in sorted((ROOT / "tests" / "recordings").glob("[df]*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
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


def test_page_names_every_recorded_error_of_a_served_api() -> None:
    served = {spec.key: spec for spec in SERVED}
    seen = {pair for pair in recorded_errors() if pair[0] in served and pair[1] != "NONE"}
    assert len(seen) > 60
    assert {(key, name) for key, name in seen if name not in possible_errors(served[key])} == set()


def test_operations_resource_types_and_errors_have_kafkas_names() -> None:
    for spec in SERVED:
        for operation, kind in (*spec.rights, *spec.rights_to_see):
            assert operation in get_args(Operation) or (operation, kind) == EVERY_RIGHT
            assert kind in get_args(ResourceType)
        assert possible_errors(spec) <= set(ErrorCode.__members__)


def test_every_api_of_a_zookeeper_broker_is_served_or_unserved_with_a_reason() -> None:
    page = apis_page()
    for key, spec in API_SPECS.items():
        assert (spec.route is None) == (key in UNSERVED), spec.name
        assert f"| `{spec.name}` | {key} |" in page
