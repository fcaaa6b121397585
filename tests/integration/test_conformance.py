"""Every API in every version: forwarded and direct answers are the same bytes, and Kafka's.

Read first: the tables are in `conformance/`, a file for each API; each row is asked in each version
through broker 2, which forwards, and through broker 1, the controller.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_proxy.routing import SHIPPED
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

CONTROLLER: Final = 1
FORWARDING: Final = 2
CREATE_TOPICS, METADATA = 19, 3
_BATCH: Final = 250
_SEEN_WITHIN_S: Final = 20.0

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


class Brokers:
    """Connections to the brokers of one cluster, opened again when they were closed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: dict[int, Connection] = {}

    def ask(self, broker: int, key: int, version: int, message: Any) -> bytes | str:
        """Return header and body of the answer, or CLOSED."""
        connection = self._open.get(broker)
        if connection is None:
            connection = self._open[broker] = Connection(self._cluster.bootstrap_server(broker))
        head = encode_request_header(RequestHeader(key, version, 7, "conformance"))
        answer = connection.ask(head + encode_request(key, version, message))
        if isinstance(answer, str):
            self._open.pop(broker).close()
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
        properties={"log.dirs": "/logs-a,/logs-b"},
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    ) as cluster:
        asked = Brokers(cluster)
        _create_internal_topics(asked)
        wanted = [asking for pair in ASKINGS for asking in pair if asking.case.topic]
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
    shown: list[tuple[int, bytes] | str] = []
    for asking in pair:
        answer = brokers.ask(asking.broker, asking.key, asking.version, asking.message())
        expected = asking.filled(asking.case.answer)
        if isinstance(answer, str) or expected == CLOSED:
            assert answer == expected
            shown.append(CLOSED)
            continue
        told = json_of(asking.key, asking.version, answer)
        assert lacking(expected, told) is None, f"broker {asking.broker}: {lacking(expected, told)}"
        shown.append(comparable_bytes(asking, answer))
    assert shown[0] == shown[1]


def test_there_are_enough_rows_for_every_api_and_version() -> None:
    """Each API that is served, in each version, with a failing case where it can fail."""
    asked: Counter[tuple[int, int]] = Counter((a.key, a.version) for a, _ in ASKINGS)
    served = {(key, version) for key in SHIPPED for version in API_SPECS[key].versions}
    assert served - set(asked) == set()
    assert len(ASKINGS) >= 400
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
