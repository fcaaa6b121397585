"""Which requests a fault rule acts on, and which rules are rejected."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bridgehead.fault_rules import (
    RULES_MAX,
    FaultRuleError,
    FaultRules,
    Side,
    Subject,
    parse_rule,
)

CREATION = Subject(
    api_key=19,
    api_version=5,
    client_id="app",
    principal="User:alice",
    topics=frozenset({"orders", "payments"}),
)
ERROR = {"action": "error", "error": "NOT_CONTROLLER"}


@pytest.mark.parametrize(
    ("conditions", "matches"),
    [
        ({}, True),
        ({"api": "CreateTopics"}, True),
        ({"api": "DeleteTopics"}, False),
        ({"api": "CreateTopics", "versions": "5"}, True),
        ({"api": "CreateTopics", "versions": "2-5"}, True),
        ({"api": "CreateTopics", "versions": "6-7"}, False),
        ({"client_id": "app"}, True),
        ({"client_id": "other"}, False),
        ({"principal": "User:alice"}, True),
        ({"principal": "User:bob"}, False),
        ({"topic": "orders"}, True),
        ({"topic": "refunds"}, False),
        ({"api": "CreateTopics", "topic": "orders", "principal": "User:bob"}, False),
        ({"side": "envelope"}, False),
    ],
)
def test_a_rule_matches_when_all_its_conditions_hold(
    conditions: dict[str, str], matches: bool
) -> None:
    assert parse_rule({**ERROR, **conditions}).matches(Side.CLIENT, CREATION) is matches


@pytest.mark.parametrize(
    ("counts", "acted_on"),
    [
        ({}, [1]),
        ({"times": 2}, [1, 2]),
        ({"nth": 3}, [3]),
        ({"nth": 2, "times": 3}, [2, 3, 4]),
        ({"nth": 4, "times": 0}, [4, 5, 6]),
    ],
)
def test_a_rule_acts_from_its_nth_match_on(counts: dict[str, int], acted_on: list[int]) -> None:
    rules = FaultRules()
    rules.add(parse_rule({**ERROR, **counts}))
    hits = [n for n in range(1, 7) if rules.hit(Side.CLIENT, CREATION) is not None]
    assert hits == acted_on
    (described,) = rules.described()
    assert (described["matches"], described["hits"]) == (6, len(acted_on))


def test_the_first_rule_acts_and_every_matching_rule_counts() -> None:
    rules = FaultRules()
    first = rules.add(parse_rule(ERROR))
    second = rules.add(parse_rule({"action": "close", "nth": 2}))
    acting = [rules.hit(Side.CLIENT, CREATION) for _ in range(3)]
    assert [action and action[0] for action in acting] == [first, second, None]


def test_the_name_of_a_removed_rule_can_be_used_again() -> None:
    rules = FaultRules()
    assert [rules.add(parse_rule(ERROR)) for _ in range(2)] == ["rule-1", "rule-2"]
    assert rules.remove("rule-1") == 1
    assert rules.add(parse_rule(ERROR)) == "rule-1"
    with pytest.raises(FaultRuleError, match="already"):
        rules.add(parse_rule(ERROR), "rule-2")
    with pytest.raises(FaultRuleError, match="no fault rule 'rule-9'"):
        rules.remove("rule-9")
    assert rules.remove(None) == 2


def test_the_number_of_rules_is_bounded() -> None:
    rules = FaultRules()
    for _ in range(RULES_MAX):
        rules.add(parse_rule(ERROR))
    with pytest.raises(FaultRuleError, match="remove some"):
        rules.add(parse_rule(ERROR))


@pytest.mark.parametrize(
    "document",
    [
        {**ERROR, "api": "CreateTopics", "versions": "2-5", "nth": 2, "times": 0},
        {"action": "delay", "delay_ms": 5, "side": "envelope", "principal": "User:a"},
        {"action": "truncate", "phase": "response", "topic": "t", "client_id": "c"},
    ],
)
def test_a_rule_is_read_back_from_its_own_json(document: dict[str, Any]) -> None:
    rule = parse_rule(document)
    assert parse_rule(rule.to_json()) == rule
    assert document.items() <= rule.to_json().items()


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"action": "explode"},
        {"action": "error"},
        {"action": "error", "error": "NONE"},
        {"action": "error", "error": "NO_SUCH_ERROR"},
        {"action": "error", "error": 41},
        {"action": "close", "error": "NOT_CONTROLLER"},
        {"action": "delay"},
        {"action": "delay", "delay_ms": -1},
        {"action": "delay", "delay_ms": 10**9},
        {"action": "close", "delay_ms": 5},
        {"action": "close", "side": "both"},
        {"action": "close", "phase": "later"},
        {"action": "close", "api": "createTopics"},
        {"action": "close", "versions": "2"},
        {"action": "close", "api": "CreateTopics", "versions": "5-2"},
        {"action": "close", "nth": 0},
        {"action": "close", "times": True},
        {"action": "close", "topic": 7},
        {"action": "close", "topic": "x" * 501},
        {"action": "close", "colour": "red"},
        {"action": "duplicate"},
        {"action": "duplicate", "side": "envelope", "phase": "response"},
        {"action": "truncate"},
        {"action": "close", "probability": 0},
        {"action": "close", "probability": True},
        {"action": "close", "count": "rack"},
        {"action": "delay", "delay_ms": 100, "jitter_ms": 101},
        {"action": "close", "jitter_ms": 5},
        {"action": [], "side": {}},
    ],
)
def test_an_invalid_rule_is_rejected_in_one_sentence(document: dict[str, Any]) -> None:
    with pytest.raises(FaultRuleError) as rejected:
        parse_rule(document)
    assert str(rejected.value).endswith((".", "?"))


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"action": "eror"}, "error"),
        ({"action": "error", "error": "not_controler"}, "NOT_CONTROLLER"),
        ({"action": "close", "api": "create-topic"}, "CreateTopics"),
        ({"action": "close", "clientid": "x"}, "client_id"),
        ({"action": "close", "side": "envelop"}, "envelope"),
    ],
)
def test_the_name_that_was_meant_is_suggested(document: dict[str, Any], name: str) -> None:
    with pytest.raises(FaultRuleError, match=rf" Did you mean {name}\?$"):
        parse_rule(document)


def test_nothing_is_suggested_for_a_name_that_is_like_no_other() -> None:
    with pytest.raises(FaultRuleError) as rejected:
        parse_rule({"action": "close", "api": "Xyzzy"})
    assert "Did you mean" not in str(rejected.value)


def test_brokers_can_count_together() -> None:
    numbers = iter(range(1, 100))
    brokers = [FaultRules(), FaultRules()]
    for rules in brokers:
        rule = parse_rule({**ERROR, "count": "cluster", "nth": 3, "times": 2})
        rules.add(rule, "shared", lambda: next(numbers))
    acted = [brokers[n % 2].hit(Side.CLIENT, CREATION) is not None for n in range(6)]
    assert acted == [False, False, True, True, False, False]
    assert [rules.described()[0]["hits"] for rules in brokers] == [1, 1]


def test_a_rule_of_one_broker_cannot_count_for_the_cluster() -> None:
    with pytest.raises(FaultRuleError, match="added to the cluster"):
        FaultRules().add(parse_rule({**ERROR, "count": "cluster"}))


def test_a_rule_acts_on_a_share_of_its_matches() -> None:
    rules = FaultRules(Random(7))
    rules.add(parse_rule({**ERROR, "probability": 0.25}))
    hits = sum(rules.hit(Side.CLIENT, CREATION) is not None for _ in range(1000))
    assert 200 < hits < 300
    assert rules.described()[0]["rule"]["times"] == 0  # without `times`, there is no limit


def test_jitter_makes_delays_shorter_and_longer() -> None:
    rules = FaultRules(Random(7))
    delay = {"action": "delay", "delay_ms": 300, "jitter_ms": 200, "times": 0}
    rules.add(parse_rule(delay))
    hits = [rules.hit(Side.CLIENT, CREATION) for _ in range(200)]
    delays = [hit[1].delay_ms for hit in hits if hit is not None]
    assert 100 <= min(delays) < 150
    assert 450 < max(delays) <= 500
    assert rules.described()[0]["rule"] == {**delay, "nth": 1, "side": "client", "phase": "request"}
