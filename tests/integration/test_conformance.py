"""Every API in every version: forwarded and direct answers are the same bytes, and Kafka's.

Read first: the tables are in `conformance/`, a file for each API; each row is asked in each version
through broker 2, which forwards, and through broker 1, the controller. On listeners of the drafted
dialect it is asked again, where the drafts have that version in the same bytes.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages import alter_configs, describe_configs
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.kafka_wire.schema import Array, fields_of
from broker_proxy.routing import DIALECTS, SHIPPED, Route, route
from chaos.fidelity import CLOSED, Connection
from cluster_model.topic_names import INTERNAL_TOPICS
from tests.integration.conformance.case import (
    COORDINATORS,
    Asking,
    Table,
    comparable_bytes,
    lacking,
)
from tests.integration.conformance.tables import TABLES
from tests.integration.drafted_listeners import error_codes

CONTROLLER: Final = 1
FORWARDING: Final = 2
CREATE_TOPICS, METADATA, API_VERSIONS, ENVELOPE = 19, 3, 18, 58
ALTER_CONFIGS, DESCRIBE_CONFIGS = 33, 32
APIS_PAGE: Final = Path(__file__).parents[2] / "docs" / "apis.md"
NOT_CONTROLLER: Final = 41
_BATCH: Final = 250
_SEEN_WITHIN_S: Final = 60.0

Pair = tuple[Asking, Asking]


def askings() -> Iterator[Pair]:
    """Every row in every version: (through the broker that forwards, through the controller)."""
    numbers = itertools.count(1)
    for table in TABLES:
        for version in API_SPECS[table.key].versions:
            for case in table.cases:
                if version in case.versions:
                    forwarded, direct = (
                        Asking(case, table.key, version, broker, next(numbers))
                        for broker in (FORWARDING, CONTROLLER)
                    )
                    yield forwarded, direct


ASKINGS: Final = tuple(askings())


def drafted_askings() -> Iterator[Pair]:
    """Every row on a drafted listener: (through the other broker, through the controller)."""
    numbers = itertools.count(50_001)
    for pair in ASKINGS:
        if pair[0].case.drafted or not has_same_layout(pair[0].key, pair[0].version):
            continue
        forwarded, direct = (
            dataclasses.replace(each, number=next(numbers), dialect="drafted") for each in pair
        )
        yield forwarded, direct


def has_same_layout(key: int, version: int) -> bool:
    """Whether a version has the same fields in both dialects."""
    shipped, drafted = API_SPECS[key], DRAFTED_SPECS[key]
    return all(
        layout(of_shipped, version) == layout(of_drafted, version)
        for of_shipped, of_drafted in (
            (shipped.request, drafted.request),
            (shipped.response, drafted.response),
        )
    )


def layout(kind: Any, version: int) -> Any:
    """Return what a type's bytes are made of in a version."""
    if isinstance(kind, Array):
        return ["array", layout(kind.of, version)]
    if not isinstance(kind, type):
        return kind.name
    return [
        (each.name, version in each.nullable, each.tag, layout(each.type, version))
        for each in fields_of(kind)
        if version in each.versions
    ]


DRAFTED_ASKINGS: Final = tuple(drafted_askings())


class Brokers:
    """Connections to the brokers of one cluster, opened again when they were closed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: dict[tuple[int, str], Connection] = {}

    def ask(
        self, broker: int, key: int, version: int, message: Any, dialect: str = "shipped"
    ) -> bytes | str:
        """Return header and body of the answer, or CLOSED."""
        connection = self._open.get((broker, dialect))
        if connection is None:
            address = self._cluster.bootstrap_server(broker, dialect.upper())
            connection = self._open[broker, dialect] = Connection(address)
        head = encode_request_header(RequestHeader(key, version, 7, "conformance"))
        answer = connection.ask(head + encode_request(key, version, message))
        if isinstance(answer, str):
            self._open.pop((broker, dialect)).close()
        return answer

    def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            connection.close()


def json_of(key: int, version: int, answer: bytes) -> dict[str, Any]:
    """Return an answer's body in JSON's form."""
    if key == 18 and answer[4:6] == b"\0\x23":
        version = 0
    _, at = decode_response_header(key, version, answer)
    return decode_body(key, "response", version, answer[at:])


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """Three brokers that hold every row's topic, and all of which know of all."""
    with Cluster(
        controller=CONTROLLER,
        properties={
            "log.dirs": "/logs-a,/logs-b",
            "listeners": "SHIPPED://:0,DRAFTED://:0",
            "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:PLAINTEXT",
            "inter.broker.listener.name": "SHIPPED",
            "listener.name.drafted.bridgehead.dialect": "drafted",
        },
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    ) as cluster:
        asked = Brokers(cluster)
        _create_internal_topics(asked)
        pairs = (*ASKINGS, *DRAFTED_ASKINGS)
        wanted = [asking for pair in pairs for asking in pair if asking.case.topic]
        for batch in _batches(wanted):
            _create(asked, batch)
        _until_known(asked, [*INTERNAL_TOPICS, *(asking.topic_name for asking in wanted)])
        yield asked
        asked.close()


def _create_internal_topics(asked: Brokers) -> None:
    """With coordinators that the tables know."""
    leaders = [CreatableReplicaAssignment(*each) for each in enumerate([[n] for n in COORDINATORS])]
    topics = [CreatableTopic(name, -1, -1, leaders) for name in sorted(INTERNAL_TOPICS)]
    message = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
    asked.ask(CONTROLLER, CREATE_TOPICS, 4, message)


def _batches(wanted: list[Asking]) -> Iterator[list[Asking]]:
    for at in range(0, len(wanted), _BATCH):
        yield wanted[at : at + _BATCH]


def _create(asked: Brokers, batch: list[Asking]) -> None:
    topics = []
    for asking in batch:
        topic = asking.case.topic
        assert topic is not None
        others = [broker for broker in (1, 2, 3) if broker != asking.broker]
        replicas = [asking.broker, *others][: topic.replicas]
        topics.append(
            CreatableTopic(
                name=asking.topic_name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition, replicas)
                    for partition in range(topic.partitions)
                ],
                configs=[CreatableTopicConfig(*each) for each in topic.configs.items()],
            )
        )
    message = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
    answer = asked.ask(CONTROLLER, CREATE_TOPICS, 4, message)
    assert isinstance(answer, bytes)
    codes = Counter(t["errorCode"] for t in json_of(CREATE_TOPICS, 4, answer)["topics"])
    assert set(codes) == {0}


def _until_known(asked: Brokers, names: list[str]) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    message = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    deadline = time.monotonic() + _SEEN_WITHIN_S
    for broker in (1, 2, 3):
        codes = {3}
        while codes != {0} and time.monotonic() < deadline:
            answer = asked.ask(broker, METADATA, 4, message)
            assert isinstance(answer, bytes)
            codes = {t["errorCode"] for t in json_of(METADATA, 4, answer)["topics"]}
        assert codes == {0}


def name_of(pair: Pair) -> str:
    """Return what a test is called."""
    asking = pair[0]
    api = API_SPECS[asking.key].name
    return f"{api}-v{asking.version}-{asking.case.name.replace(' ', '-')}"


@pytest.mark.parametrize("pair", ASKINGS, ids=name_of)
def test_forwarded_and_direct_answers_are_the_same_and_kafkas(brokers: Brokers, pair: Pair) -> None:
    """Throttle, times, ids and addresses aside; what the row names is what Kafka says."""
    forwarded, direct = (told(brokers, asking) for asking in pair)
    assert forwarded == direct


@pytest.mark.parametrize("pair", DRAFTED_ASKINGS, ids=name_of)
def test_a_drafted_listener_says_what_a_shipped_one_does(brokers: Brokers, pair: Pair) -> None:
    """Where no draft says otherwise; away from the controller only what it still forwards."""
    elsewhere, direct = pair
    at_controller = told(brokers, direct)
    way = route(
        direct.key,
        direct.version,
        dialect="drafted",
        forwarding_enabled=True,
        broker_is_controller=False,
    )
    if way is not Route.NOT_CONTROLLER:
        assert told(brokers, elsewhere) == at_controller
        return
    message = elsewhere.message()
    answer = brokers.ask(FORWARDING, direct.key, direct.version, message, "drafted")
    if isinstance(answer, str):
        assert direct.case.answer == CLOSED
        return
    # The code of the whole may be NONE beside: what counts is what is said of each element.
    body = json_of(direct.key, direct.version, answer)
    codes = error_codes([value for value in body.values() if isinstance(value, list)])
    assert codes <= {NOT_CONTROLLER}, codes


def told(brokers: Brokers, asking: Asking) -> tuple[int, bytes] | str:
    """Ask; see that the answer is what the row names, and return what can be compared of it."""
    answer = brokers.ask(
        asking.broker, asking.key, asking.version, asking.message(), asking.dialect
    )
    expected = asking.filled(asking.case.answer)
    if isinstance(answer, str) or expected == CLOSED:
        assert answer == expected
        return CLOSED
    shown = json_of(asking.key, asking.version, answer)
    assert lacking(expected, shown) is None, f"broker {asking.broker}: {lacking(expected, shown)}"
    return comparable_bytes(asking, answer)


@pytest.mark.parametrize("broker", [CONTROLLER, FORWARDING])
def test_a_broker_that_is_asked_to_alter_itself_does_so(brokers: Brokers, broker: int) -> None:
    """By AlterConfigs, as kafka-configs.sh asks it; a Kafka that forwards lets only its controller.

    The row `alter-configs-named-broker` of docs/differences.md.
    """
    for value in ("2", None):
        configs = [alter_configs.AlterableConfig("log.cleaner.threads", value)] if value else []
        resource = alter_configs.AlterConfigsResource(4, str(broker), configs)
        message = alter_configs.AlterConfigsRequest(resources=[resource])
        answer = brokers.ask(broker, ALTER_CONFIGS, 2, message)
        assert isinstance(answer, bytes)
        (row,) = json_of(ALTER_CONFIGS, 2, answer)["responses"]
        assert (row["errorCode"], row["errorMessage"]) == (0, None)
        deadline = time.monotonic() + 30
        while (described := _cleaner_threads(brokers, broker)) != (value or "1"):
            assert time.monotonic() < deadline, described


def _cleaner_threads(brokers: Brokers, broker: int) -> str:
    asked = describe_configs.DescribeConfigsResource(4, str(broker), ["log.cleaner.threads"])
    message = describe_configs.DescribeConfigsRequest(resources=[asked])
    answer = brokers.ask(broker, DESCRIBE_CONFIGS, 4, message)
    assert isinstance(answer, bytes)
    ((config,),) = (r["configs"] for r in json_of(DESCRIBE_CONFIGS, 4, answer)["results"])
    return str(config["value"])


@pytest.mark.parametrize("broker", [CONTROLLER, FORWARDING])
@pytest.mark.parametrize("dialect", ["shipped", "drafted"])
def test_the_page_of_apis_is_what_a_running_broker_advertises(
    brokers: Brokers, dialect: str, broker: int
) -> None:
    """docs/apis.md, row by row; nothing is advertised that the routing table does not have."""
    answer = brokers.ask(broker, API_VERSIONS, 0, ApiVersionsRequest(), dialect)
    assert isinstance(answer, bytes)
    told = {
        each["apiKey"]: (each["minVersion"], each["maxVersion"])
        for each in json_of(API_VERSIONS, 0, answer)["apiKeys"]
    }
    assert told == documented(dialect)
    assert set(told) == set(DIALECTS[dialect])


def documented(dialect: str) -> dict[int, tuple[int, int]]:
    """Return the versions of each API that the page has for listeners of a dialect."""
    found = {}
    text = APIS_PAGE.read_text(encoding="utf-8").partition("## Left out")[0]
    for line in text.splitlines():
        if re.match(r"\| `\w+` \|", line):
            _, _, key, versions, way, *_ = (cell.strip() for cell in line.split("|"))
            shipped, _, drafted = versions.partition("; drafted: ")
            if way.startswith("drafted: ") and dialect != "drafted":
                continue
            shown = drafted if dialect == "drafted" and drafted else shipped
            first, _, last = shown.partition(" to ")
            found[int(key)] = (int(first), int(last))
    return found


def test_there_are_enough_rows_for_every_api_and_version() -> None:
    """Each API that is served, in each version, with a failing case where it can fail."""
    asked: Counter[tuple[int, int]] = Counter((a.key, a.version) for a, _ in ASKINGS)
    both_ways = set(SHIPPED) - {ENVELOPE}  # which the controller alone opens
    served = {(key, version) for key in both_ways for version in API_SPECS[key].versions}
    assert served - set(asked) == set()
    assert len(ASKINGS) >= 400
    assert len(DRAFTED_ASKINGS) >= 400
    by_key: Mapping[int, Table] = {table.key: table for table in TABLES}
    assert len(by_key) == len(TABLES)


def test_an_answer_that_differs_is_noticed() -> None:
    """A wrong code, a wrong text, one element too many, and bytes that differ in one code."""
    expected = {"topics": [{"errorCode": 0, "errorMessage": "Topic name…"}]}
    right = {"topics": [{"errorCode": 0, "errorMessage": "Topic name is invalid", "name": "t"}]}
    assert lacking(expected, right) is None
    assert lacking(expected, {"topics": [{"errorCode": 0}]}) is None  # no text in this version
    for wrong in (
        {"topics": [{"errorCode": 3, "errorMessage": "Topic name"}]},
        {"topics": [{"errorCode": 0, "errorMessage": "Another"}]},
        {"topics": right["topics"] * 2},
        {"topics": []},
        {"topics": None},
    ):
        assert lacking(expected, wrong) is not None
    asking = next(a for a, _ in ASKINGS if (a.key, a.version) == (20, 5))

    def bytes_of(name: str, code: int) -> tuple[int, bytes]:
        results = [DeletableTopicResult(name=name, topic_id=bytes(16), error_code=code)]
        head = encode_response_header(20, 5, 7)
        body = encode_response(20, 5, DeleteTopicsResponse(responses=results))
        return comparable_bytes(asking, head + body)

    assert bytes_of(asking.topic_name, 3) == bytes_of(asking.topic_name, 3)
    assert bytes_of(asking.topic_name, 3) != bytes_of(asking.topic_name, 0)
    assert bytes_of(asking.topic_name, 3) != bytes_of("another-name", 3)
