"""The controller mutation quota: whose bucket pays, what is refused, for how long who is held up.

What a live Kafka 3.9.1 said to the same is in the figures of these tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bridgehead.kafka_wire.codec import encode_response, throttle_time_ms
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.kafka_wire.messages.create_topics import CreateTopicsResponse
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterResponse
from bridgehead.kafka_wire.primitives import WireError
from cluster_model.client_quotas import Level, governing_level
from cluster_model.image import MetadataImage
from cluster_model.mutation_rates import MUTATION_RATE
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scala_order import mutable_hash_order
from controller.apis.base import DONE, Decided
from controller.apis.create_partitions import CreatePartitions
from controller.apis.delete_topics import DeleteTopics
from controller.mutation_quotas import Charges, MutationQuotas
from tests.unit.loop_bench import Term
from tests.unit.topic_decisions import config, context, create_topics, creation, image, topic

CREATE_PARTITIONS, STRICT, PERMISSIVE = 37, 3, 2
CREATE_TOPICS, DELETE_TOPICS = 19, 20
EXCEEDED, NONE = "THROTTLING_QUOTA_EXCEEDED", "NONE"
Rates = Mapping[tuple[str, str], str]


def limited(rates: Rates) -> MetadataImage:
    """A cluster with these rates."""
    return image().replay(
        ConfigRecord(ConfigResource(*entity), {MUTATION_RATE: rate})
        for entity, rate in rates.items()
    )


class Client:
    """Asks for partitions, in the name of `app` unless said."""

    def __init__(self, rate: str) -> None:
        self.rates = limited({("clients", "<default>"): rate}).mutation_rates
        self.quotas = MutationQuotas(samples=11, window_s=1)

    def ask(
        self, *partitions: int, at_s: float, version: int = STRICT, client_id: str | None = "app"
    ) -> tuple[list[str], int]:
        """Return what becomes of topics of so many partitions, and the throttle."""
        now_ms, charges = int(at_s * 1000), Charges()
        asked = replace(
            context(version), api_key=CREATE_PARTITIONS, client_id=client_id, now_ms=now_ms
        )
        elements = [Decided(f"t{n}", DONE, mutations=count) for n, count in enumerate(partitions)]
        done = self.quotas.charge(asked, elements, self.rates, charges)
        return [each.outcome.error.name for each in done], charges.throttle_left_ms(now_ms)


def test_a_full_bucket_lets_one_request_through_however_large_it_is() -> None:
    """11 tokens, 20 partitions: accepted; then 9 seconds until the bucket is at zero again."""
    client = Client("1.0")
    assert client.ask(20, at_s=1000) == ([NONE], 0)
    assert client.ask(1, 1, at_s=1001) == ([EXCEEDED, EXCEEDED], 8000)
    assert client.ask(1, at_s=1009) == ([NONE], 0)
    assert client.ask(1, at_s=1009) == ([EXCEEDED], 1000)


def test_older_versions_are_let_through_and_held_up() -> None:
    """Each goes further below zero; a strict request after them waits for all of them."""
    client = Client("1.0")
    assert client.ask(11, at_s=1000, version=PERMISSIVE) == ([NONE], 0)
    assert client.ask(1, 1, at_s=1000, version=PERMISSIVE) == ([NONE, NONE], 2000)
    assert client.ask(1, at_s=1001, version=PERMISSIVE) == ([NONE], 2000)
    assert client.ask(1, at_s=1001) == ([EXCEEDED], 2000)


def test_a_bucket_holds_no_more_than_its_windows_bring() -> None:
    """Years of rest are worth 11 seconds; smaller windows hold less."""
    client = Client("1.0")
    client.ask(1, at_s=1000)
    assert client.ask(12, 1, at_s=900_000_000) == ([NONE, EXCEEDED], 1000)
    small = Client("1.0")
    small.quotas = MutationQuotas(samples=2, window_s=3)
    assert small.ask(7, 1, at_s=1000) == ([NONE, EXCEEDED], 1000)


def test_each_client_has_a_bucket_of_its_own_and_who_has_no_client_id_has_none() -> None:
    client = Client("1.0")
    client.ask(20, at_s=1000)
    assert client.ask(20, at_s=1000, client_id="other") == ([NONE], 0)
    for nameless in (None, ""):
        assert client.ask(500, 1, at_s=1000, client_id=nameless) == ([NONE, NONE], 0)
    assert client.ask(1, at_s=1000, client_id="other") == ([EXCEEDED], 9000)


@pytest.mark.parametrize(
    ("rate", "first", "later"),
    [("0.0", NONE, EXCEEDED), ("-1.0", EXCEEDED, EXCEEDED), ("NaN", NONE, NONE)],
)
def test_rates_that_never_fill_a_bucket_refuse_and_hold_up_nobody(
    rate: str, first: str, later: str
) -> None:
    """Zero lets one request through; a negative rate none, but for older versions."""
    client = Client(rate)
    assert client.ask(1, at_s=1000) == ([first], 0)
    assert client.ask(1, at_s=1001) == ([later], 0)
    assert client.ask(1, at_s=1001, version=PERMISSIVE) == ([NONE], 0)


def test_a_changed_rate_keeps_the_bucket_and_a_time_without_a_rate_empties_nothing() -> None:
    """Below zero stays below zero under another rate; without one the bucket is full again."""
    client = Client("0.1")
    client.ask(2, at_s=1000)
    client.rates = limited({("clients", "<default>"): "0.2"}).mutation_rates
    assert client.ask(1, at_s=1000) == ([EXCEEDED], 4500)
    client.rates = limited({("clients", "another"): "1.0"}).mutation_rates
    assert client.ask(1, at_s=1000) == ([NONE], 0)
    client.rates = limited({("clients", "<default>"): "0.1"}).mutation_rates
    assert client.ask(2, 1, at_s=1000) == ([NONE, EXCEEDED], 9000)


def test_a_clock_that_is_set_back_takes_nothing_from_a_bucket() -> None:
    client = Client("1.0")
    client.ask(5, at_s=1000)
    assert client.ask(6, at_s=10) == ([NONE], 0)
    assert client.ask(1, 1, at_s=10) == ([NONE, EXCEEDED], 1000)


def test_buckets_of_client_ids_that_are_never_used_again_take_no_memory() -> None:
    """10,000 are kept; a bucket untouched for an hour is forgotten."""
    client = Client("1.0")
    for number in range(10_100):
        client.ask(1, at_s=1000, client_id=f"random-{number}")
    assert len(client.quotas._buckets) == 10_000


def entity(text: str) -> ConfigResource:
    """`u`, `u/c` or `/c`: a user, a user's client, a client; `*` is the default of its kind."""
    user, _, client = text.replace("*", "<default>").partition("/")
    if not user:
        return ConfigResource("clients", client)
    return ConfigResource("users", f"{user}/clients/{client}" if client else user)


@pytest.mark.parametrize(
    ("rates", "user", "client_id", "level", "rate"),
    [
        ({}, "u", "c", ("", "c"), None),
        ({"/c": 1, "/*": 2}, "u", "c", ("", "c"), 1),
        ({"/*": 2}, "u", "c", ("", "c"), 2),
        ({"*": 3, "/c": 1}, "u", "c", ("u", ""), 3),
        ({"*/*": 4, "*": 3}, "u", "c", ("u", "c"), 4),
        ({"*/c": 5, "*/*": 4}, "u", "c", ("u", "c"), 5),
        ({"u": 6, "*/c": 5}, "u", "c", ("u", ""), 6),
        ({"u/*": 7, "u": 6}, "u", "c", ("u", "c"), 7),
        ({"u/c": 8, "u/*": 7}, "u", "c", ("u", "c"), 8),
        ({"u/other": 8}, "u", "c", ("", "c"), None),
        ({"u/*": 7, "u": 6}, "u", "", ("u", ""), 6),
        ({"u/*": 7, "u": 6}, "u", None, ("u", None), None),
        ({"a%20b/c%2Fd": 9}, "a b", "c/d", ("a%20b", "c%2Fd"), 9),
    ],
)
def test_the_most_specific_entity_governs(
    rates: dict[str, float],
    user: str,
    client_id: str | None,
    level: tuple[str, str | None],
    rate: float | None,
) -> None:
    """KIP-55's order; an empty client id falls back to its user, as in Kafka."""
    known = {entity(text): float(value) for text, value in rates.items()}
    assert governing_level(known, user, client_id) == (Level(*level), rate)


def test_topics_are_charged_in_the_order_of_kafkas_hash_table() -> None:
    """Five topics of 12 partitions each at 1/s: Kafka let the third one through."""
    names = [f"t{n}x47342" for n in (5, 3, 1, 4, 2)]
    assert mutable_hash_order(names)[0] == "t1x47342"
    quotas, charges = MutationQuotas(samples=11, window_s=1), Charges()
    asked = replace(context(7), api_key=CREATE_TOPICS, client_id="ord", now_ms=10**6)
    elements = [Decided(name, DONE, mutations=12) for name in names]
    rates = limited({("clients", "ord"): "1.0"}).mutation_rates
    done = quotas.charge(asked, elements, rates, charges)
    assert [d.element for d in done if d.outcome.succeeded] == ["t1x47342"]
    assert [d.element for d in done] == names


async def test_a_topic_over_the_quota_is_not_created_and_the_answer_says_for_how_long() -> None:
    """What comes before it in the request is; the throttle shrinks while the request waits."""
    term = Term(before=limited({("clients", "app"): "1.0"}))
    api = create_topics()
    asked = term.ask(api, creation(topic("big", 20), topic("one")), client_id="app", version=6)
    assert await term.run_until(asked) == [{"big": NONE, "one": EXCEEDED}]
    assert term.throttled_ms == 9000
    assert "/brokers/topics/one" not in term.store.znodes
    later = term.ask(api, creation(topic("later"), timeout_ms=0), client_id="app", version=5)
    assert await term.run_until(later) == [{"later": "REQUEST_TIMED_OUT"}]
    assert term.throttled_ms == 10_000


async def test_a_dry_run_and_a_refused_topic_cost_nothing_even_over_the_quota() -> None:
    """The quota is asked last: a bad name is a bad name."""
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    api = create_topics()
    await term.run_until(term.ask(api, creation(topic("big", 20))))
    dry = term.ask(api, creation(topic("dry"), validate_only=True))
    bad = term.ask(api, creation(topic("bad name")))
    assert await term.run_until(dry, bad) == [
        {"dry": NONE},
        {"bad name": "INVALID_TOPIC_EXCEPTION"},
    ]
    assert term.throttled_ms == 0


async def test_growing_and_deleting_are_charged_by_their_partitions() -> None:
    """Growth by 12 of 11; then a deletion is refused, and an older one held up for its 14."""
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    await term.run_until(term.ask(create_topics(), creation(topic("orders", 1)), version=7))
    term.now_s += 100
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic("orders", 13, None)], timeout_ms=1000
    )
    assert await term.run_until(term.ask(CreatePartitions(), grow, version=3)) == [{"orders": NONE}]
    delete, api = (
        DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000),
        DeleteTopics(config()),
    )
    assert await term.run_until(term.ask(api, delete, version=5)) == [{"orders": EXCEEDED}]
    assert term.throttled_ms == 1000
    assert await term.run_until(term.ask(api, delete, version=4)) == [{"orders": NONE}]
    assert term.throttled_ms == 14_000


async def test_an_element_that_is_decided_again_pays_once() -> None:
    """A conflict of another request undoes it; its second decision is already paid."""
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    term.store.znodes["/brokers/topics/taken"] = b"foreign"
    taken = term.ask(create_topics(), creation(topic("taken", 1)))
    mine = term.ask(create_topics(), creation(topic("mine", 9)))
    assert (await term.run_until(taken, mine))[1] == {"mine": NONE}
    last = term.ask(create_topics(), creation(topic("last", 1)))
    assert await term.run_until(last) == [{"last": NONE}]
    over = term.ask(create_topics(), creation(topic("zero", 1)), version=7)
    assert await term.run_until(over) == [{"zero": NONE}]
    below = term.ask(create_topics(), creation(topic("below", 1)), version=7)
    assert await term.run_until(below) == [{"below": EXCEEDED}]


def test_a_broker_reads_the_throttle_from_answers_that_have_room_for_it() -> None:
    """The inner answer is relayed unread, but for this; version 0 and 1 do not say it."""
    answer = CreateTopicsResponse(throttle_time_ms=1234, topics=[])
    said = {v: throttle_time_ms(19, v, encode_response(19, v, answer)) for v in range(8)}
    assert said == {0: 0, 1: 0} | dict.fromkeys(range(2, 8), 1234)
    described = DescribeClusterResponse(throttle_time_ms=77, error_code=ErrorCode.NONE)
    assert throttle_time_ms(60, 0, encode_response(60, 0, described)) == 77
    with pytest.raises(WireError):
        throttle_time_ms(19, 7, b"\0")
