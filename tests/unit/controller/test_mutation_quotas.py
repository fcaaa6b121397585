"""The controller mutation quota: buckets, rejections and throttle times.

A live Kafka 3.9.1 gave the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from cluster_model.client_quotas import QuotaLevel, governing_level
from cluster_model.image import MetadataImage
from cluster_model.mutation_rates import MUTATION_RATE
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scala_order import mutable_hash_order
from controller.apis.base import DONE, Decided
from controller.apis.create_partitions import CreatePartitions
from controller.apis.delete_topics import DeleteTopics
from controller.loop.mutation_quotas import MutationQuotas
from controller.requests.pending_request import Charges
from tests.unit.controller.loop_bench import Term
from tests.unit.controller.topic_decisions import (
    config,
    context,
    create_topics,
    creation,
    image,
    topic,
)

CREATE_PARTITIONS, STRICT, PERMISSIVE = 37, 3, 2
CREATE_TOPICS, DELETE_TOPICS = 19, 20
EXCEEDED, NONE = "THROTTLING_QUOTA_EXCEEDED", "NONE"
Rates = Mapping[tuple[str, str], str]


def limited(rates: Rates) -> MetadataImage:
    """An image in which these entities have these rates."""
    return image().replay(
        ConfigRecord(ConfigResource(*entity), {MUTATION_RATE: rate})
        for entity, rate in rates.items()
    )


class Client:
    """A client that requests partitions. Its client id is `app` by default."""

    def __init__(self, rate: str) -> None:
        self.rates = limited({("clients", "<default>"): rate}).mutation_rates
        self.quotas = MutationQuotas(samples=11, window_s=1)

    def create(
        self, *partitions: int, at_s: float, version: int = STRICT, client_id: str | None = "app"
    ) -> tuple[list[str], int]:
        """Create topics with these partition counts; return outcomes and throttle time."""
        now_ms, charges = int(at_s * 1000), Charges()
        request = context(version, api_key=CREATE_PARTITIONS, client_id=client_id, now_ms=now_ms)
        elements = [Decided(f"t{n}", DONE, mutations=count) for n, count in enumerate(partitions)]
        done = self.quotas.charge(request, elements, self.rates, charges)
        return [element.outcome.error.name for element in done], charges.throttle_left_ms(now_ms)


def test_a_full_bucket_accepts_one_request_of_any_size() -> None:
    """A bucket of 11 tokens accepts 20 partitions and is back at zero 9 seconds later."""
    client = Client("1.0")
    assert client.create(20, at_s=1000) == ([NONE], 0)
    assert client.create(1, 1, at_s=1001) == ([EXCEEDED, EXCEEDED], 8000)
    assert client.create(1, at_s=1009) == ([NONE], 0)
    assert client.create(1, at_s=1009) == ([EXCEEDED], 1000)


def test_requests_of_older_versions_are_accepted_and_throttled() -> None:
    """Each request takes the bucket further below zero."""
    client = Client("1.0")
    assert client.create(11, at_s=1000, version=PERMISSIVE) == ([NONE], 0)
    assert client.create(1, 1, at_s=1000, version=PERMISSIVE) == ([NONE, NONE], 2000)
    assert client.create(1, at_s=1001, version=PERMISSIVE) == ([NONE], 2000)
    assert client.create(1, at_s=1001) == ([EXCEEDED], 2000)


def test_a_bucket_holds_at_most_the_tokens_of_its_windows() -> None:
    client = Client("1.0")
    client.create(1, at_s=1000)
    assert client.create(12, 1, at_s=900_000_000) == ([NONE, EXCEEDED], 1000)
    small = Client("1.0")
    small.quotas = MutationQuotas(samples=2, window_s=3)
    assert small.create(7, 1, at_s=1000) == ([NONE, EXCEEDED], 1000)


def test_each_client_id_has_a_bucket_but_a_null_or_empty_client_id_has_none() -> None:
    client = Client("1.0")
    client.create(20, at_s=1000)
    assert client.create(20, at_s=1000, client_id="other") == ([NONE], 0)
    for nameless in (None, ""):
        assert client.create(500, 1, at_s=1000, client_id=nameless) == ([NONE, NONE], 0)
    assert client.create(1, at_s=1000, client_id="other") == ([EXCEEDED], 9000)


@pytest.mark.parametrize(
    ("rate", "first", "later"),
    [("0.0", NONE, EXCEEDED), ("-1.0", EXCEEDED, EXCEEDED), ("NaN", NONE, NONE)],
)
def test_rates_that_never_fill_a_bucket_give_a_throttle_time_of_zero(
    rate: str, first: str, later: str
) -> None:
    """Rate 0 accepts one request, a negative rate accepts none. Old versions are never rejected."""
    client = Client(rate)
    assert client.create(1, at_s=1000) == ([first], 0)
    assert client.create(1, at_s=1001) == ([later], 0)
    assert client.create(1, at_s=1001, version=PERMISSIVE) == ([NONE], 0)


def test_a_changed_rate_keeps_the_bucket_and_a_removed_rate_resets_it() -> None:
    client = Client("0.1")
    client.create(2, at_s=1000)
    client.rates = limited({("clients", "<default>"): "0.2"}).mutation_rates
    assert client.create(1, at_s=1000) == ([EXCEEDED], 4500)
    client.rates = limited({("clients", "another"): "1.0"}).mutation_rates
    assert client.create(1, at_s=1000) == ([NONE], 0)
    client.rates = limited({("clients", "<default>"): "0.1"}).mutation_rates
    assert client.create(2, 1, at_s=1000) == ([NONE, EXCEEDED], 9000)


def test_a_clock_that_is_set_back_does_not_change_a_bucket() -> None:
    client = Client("1.0")
    client.create(5, at_s=1000)
    assert client.create(6, at_s=10) == ([NONE], 0)
    assert client.create(1, 1, at_s=10) == ([NONE, EXCEEDED], 1000)


def test_the_number_of_buckets_is_bounded() -> None:
    client = Client("1.0")
    for number in range(10_100):
        client.create(1, at_s=1000, client_id=f"random-{number}")
    assert len(client.quotas._buckets) == 10_000


def entity(text: str) -> ConfigResource:
    """`u` is a user, `/c` a client, and `u/c` a user's client. `*` is the default entity."""
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
def test_the_quota_of_the_most_specific_entity_applies(
    rates: dict[str, float],
    user: str,
    client_id: str | None,
    level: tuple[str, str | None],
    rate: float | None,
) -> None:
    """The order is from KIP-55. As in Kafka, an empty client id gets its user's quota."""
    rate_of_entity = {entity(text): float(value) for text, value in rates.items()}
    assert governing_level(rate_of_entity, user, client_id) == (QuotaLevel(*level), rate)


def test_topics_are_charged_in_the_order_of_kafkas_hash_table() -> None:
    """The rate is 1/s, and five topics have 12 partitions each. Kafka accepted only the third."""
    names = [f"t{n}x47342" for n in (5, 3, 1, 4, 2)]
    assert mutable_hash_order(names)[0] == "t1x47342"
    quotas, charges = MutationQuotas(samples=11, window_s=1), Charges()
    request = context(7, api_key=CREATE_TOPICS, client_id="ord", now_ms=10**6)
    elements = [Decided(name, DONE, mutations=12) for name in names]
    rates = limited({("clients", "ord"): "1.0"}).mutation_rates
    done = quotas.charge(request, elements, rates, charges)
    assert [d.element for d in done if d.outcome.succeeded] == ["t1x47342"]
    assert [d.element for d in done] == names


async def test_a_topic_above_the_quota_is_not_created_and_the_response_has_the_throttle_time() -> (
    None
):
    """The topic before it in the request is created. A v5 request is accepted, but throttled."""
    term = Term(before=limited({("clients", "app"): "1.0"}))
    api = create_topics()
    reply = term.submit(api, creation(topic("big", 20), topic("one")), client_id="app", version=6)
    assert await term.run_until(reply) == [{"big": NONE, "one": EXCEEDED}]
    assert term.throttled_ms == 9000
    assert "/brokers/topics/one" not in term.store.znodes
    later = term.submit(api, creation(topic("later"), timeout_ms=0), client_id="app", version=5)
    assert await term.run_until(later) == [{"later": "REQUEST_TIMED_OUT"}]
    assert term.throttled_ms == 10_000


async def test_dry_runs_and_rejected_topics_are_not_charged() -> None:
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    api = create_topics()
    await term.run_until(term.submit(api, creation(topic("big", 20))))
    dry = term.submit(api, creation(topic("dry"), validate_only=True))
    bad = term.submit(api, creation(topic("bad name")))
    assert await term.run_until(dry, bad) == [
        {"dry": NONE},
        {"bad name": "INVALID_TOPIC_EXCEPTION"},
    ]
    assert term.throttled_ms == 0


async def test_added_and_deleted_partitions_are_charged() -> None:
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    await term.run_until(term.submit(create_topics(), creation(topic("orders", 1)), version=7))
    term.now_s += 100
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic("orders", 13, None)], timeout_ms=1000
    )
    assert await term.run_until(term.submit(CreatePartitions(), grow, version=3)) == [
        {"orders": NONE}
    ]
    delete, api = (
        DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000),
        DeleteTopics(config()),
    )
    assert await term.run_until(term.submit(api, delete, version=5)) == [{"orders": EXCEEDED}]
    assert term.throttled_ms == 1000
    assert await term.run_until(term.submit(api, delete, version=4)) == [{"orders": NONE}]
    assert term.throttled_ms == 14_000


async def test_an_element_that_is_decided_again_is_charged_once() -> None:
    term = Term(before=limited({("users", "ANONYMOUS"): "1.0"}))
    term.store.znodes["/brokers/topics/taken"] = b"external"
    taken = term.submit(create_topics(), creation(topic("taken", 1)))
    result = term.submit(create_topics(), creation(topic("mine", 9)))
    assert (await term.run_until(taken, result))[1] == {"mine": NONE}
    last = term.submit(create_topics(), creation(topic("last", 1)))
    assert await term.run_until(last) == [{"last": NONE}]
    over = term.submit(create_topics(), creation(topic("zero", 1)), version=7)
    assert await term.run_until(over) == [{"zero": NONE}]
    below = term.submit(create_topics(), creation(topic("below", 1)), version=7)
    assert await term.run_until(below) == [{"below": EXCEEDED}]


def test_a_broker_reads_the_throttle_time_from_responses_that_have_it() -> None:
    """The broker does not decode the rest of the response."""
    reply = CreateTopicsResponse(throttle_time_ms=1234, topics=[])
    throttle_times = {v: throttle_time_ms(19, v, encode_response(19, v, reply)) for v in range(8)}
    assert throttle_times == {0: 0, 1: 0} | dict.fromkeys(range(2, 8), 1234)
    described = DescribeClusterResponse(throttle_time_ms=77, error_code=ErrorCode.NONE)
    assert throttle_time_ms(60, 0, encode_response(60, 0, described)) == 77
    with pytest.raises(WireError):
        throttle_time_ms(19, 7, b"\0")
