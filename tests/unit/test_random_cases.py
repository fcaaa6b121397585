"""Cases made at random: the same seed makes the same, and they can be asked of anybody."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.headers import decode_request_header
from bridgehead.kafka_wire.schema import Array, fields_of
from broker_proxy.routing import SHIPPED
from chaos.random_cases import ASKED, random_cases
from chaos.random_values import POOLS

ENVELOPE = 58  # recorded by itself, for each kind of sender: tests/data/client_envelopes.jsonl.gz


def test_one_seed_makes_the_same_cases_and_another_others() -> None:
    assert list(random_cases(1, 5)) == list(random_cases(1, 5))
    assert list(random_cases(1, 5)) != list(random_cases(2, 5))
    assert list(random_cases(1, 3)) == list(random_cases(1, 5))[:4]


def test_every_step_can_be_read_and_every_api_that_is_served_comes_in_every_version() -> None:
    assert {asked.key for asked in ASKED} == set(SHIPPED) - {ENVELOPE}
    versions: Counter[tuple[int, int]] = Counter()
    for case in random_cases(7, 1200):
        for step in case["steps"]:
            data = bytes.fromhex(step["request_hex"])
            header, at = decode_request_header(data)
            decode_request(header.api_key, header.api_version, data[at:])
            versions[header.api_key, header.api_version] += 1
    for asked in ASKED:
        assert all(versions[asked.key, version] for version in API_SPECS[asked.key].versions)


def test_nothing_is_asked_that_a_real_kafka_never_answers_or_cannot_forget() -> None:
    """No resource twice in AlterConfigs, no topic whose replicas nobody has."""
    for case in random_cases(3, 300):
        for step in case["steps"]:
            if step["api"] == "ALTER_CONFIGS":
                named = [(r["resourceType"], r["resourceName"]) for r in step["body"]["resources"]]
                assert len(named) == len(set(named))
            if step["api"] == "CREATE_TOPICS":
                for topic in step["body"]["topics"]:
                    for assignment in topic["assignments"]:
                        assert set(assignment["brokerIds"]) & {1, 2, 3}


def test_every_pool_is_of_a_field_that_is_asked() -> None:
    """A name that Kafka's schemas do not have would be a pool that nothing draws from."""
    known: set[str] = set()
    for asked in ASKED:
        _collect(API_SPECS[asked.key].request, known)
    assert set(POOLS) <= known


def _collect(struct: type[Any], known: set[str]) -> None:
    for field in fields_of(struct):
        known |= {field.name, f"{struct.__name__}.{field.name}"}
        kind = field.type.of if isinstance(field.type, Array) else field.type
        if isinstance(kind, type):
            _collect(kind, known)
