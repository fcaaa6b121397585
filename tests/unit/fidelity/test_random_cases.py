"""Random cases: deterministic, decodable, complete, and safe for a real Kafka."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.headers import decode_request_header
from bridgehead.kafka_wire.schema import Array, fields_of
from broker_proxy.requests.routing import WITHOUT_DATA_PLANE
from tests.fidelity.random_cases import APIS, random_cases
from tests.fidelity.random_values import POOLS

ENVELOPE = 58  # recorded separately, for each kind of sender: tests/data/client_envelopes.jsonl.gz


def test_seed_determines_the_cases() -> None:
    assert list(random_cases(1, 5)) == list(random_cases(1, 5))
    assert list(random_cases(1, 5)) != list(random_cases(2, 5))
    assert list(random_cases(1, 3)) == list(random_cases(1, 5))[:4]


def test_cases_cover_every_version_of_every_served_api() -> None:
    assert {api.key for api in APIS} == set(WITHOUT_DATA_PLANE["shipped"]) - {ENVELOPE}
    versions: Counter[tuple[int, int]] = Counter()
    for case in random_cases(7, 1200):
        for step in case["steps"]:
            data = bytes.fromhex(step["request_hex"])
            header, at = decode_request_header(data)
            decode_request(header.api_key, header.api_version, data[at:])
            versions[header.api_key, header.api_version] += 1
    for api in APIS:
        assert all(versions[api.key, version] for version in API_SPECS[api.key].versions)


def test_cases_do_not_hang_or_damage_a_real_kafka() -> None:
    """No AlterConfigs has a duplicate resource, and every assignment has a known broker."""
    for case in random_cases(3, 300):
        for step in case["steps"]:
            if step["api"] == "ALTER_CONFIGS":
                named = [(r["resourceType"], r["resourceName"]) for r in step["body"]["resources"]]
                assert len(named) == len(set(named))
            if step["api"] == "CREATE_TOPICS":
                for topic in step["body"]["topics"]:
                    for assignment in topic["assignments"]:
                        assert set(assignment["brokerIds"]) & {1, 2, 3}


def test_every_pool_belongs_to_a_field() -> None:
    """A pool has values for the field of the same name. Without such a field it is never used."""
    names: set[str] = set()
    for api in APIS:
        _collect(API_SPECS[api.key].request, names)
    assert set(POOLS) <= names


def _collect(struct: type[Any], names: set[str]) -> None:
    for field in fields_of(struct):
        names |= {field.name, f"{struct.__name__}.{field.name}"}
        kind = field.type.of if isinstance(field.type, Array) else field.type
        if isinstance(kind, type):
            _collect(kind, names)
