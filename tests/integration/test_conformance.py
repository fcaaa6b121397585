"""Forwarded and direct responses have equal bytes and match Kafka's responses.

The test covers every version of every API that needs no data plane, except Envelope.
The cases are in `conformance/tables.py`. Each case is sent in each version to broker 2,
which forwards, and to broker 1, the controller. If the KIPs' drafts change neither the fields of
a version nor the result, the case is also sent to drafted listeners (docs/glossary.md).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import API_SPECS, DRAFTED_SPECS, Route
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.headers import (
    encode_response_header,
)
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
from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import decode_json, encode_message
from broker_proxy.requests.routing import ROUTING_TABLES, WITHOUT_DATA_PLANE, choose_route
from cluster_model.topic_names import INTERNAL_TOPICS
from tests.integration.conformance.case import (
    COORDINATORS,
    CaseRequest,
    comparable_bytes,
    first_difference,
    log_directories,
)
from tests.integration.conformance.tables import CASES
from tests.integration.drafted_listeners import BOTH_DIALECTS, error_codes

CONTROLLER: Final = 1
FORWARDING: Final = 2
CREATE_TOPICS, METADATA, API_VERSIONS, ENVELOPE = 19, 3, 18, 58
ALTER_CONFIGS, DESCRIBE_CONFIGS = 33, 32
APIS_PAGE: Final = Path(__file__).parents[2] / "docs" / "apis.md"
NOT_CONTROLLER: Final = 41
_BATCH: Final = 250
_SEEN_WITHIN_S: Final = 60.0

Pair = tuple[CaseRequest, CaseRequest]


def case_requests() -> Iterator[Pair]:
    """Yield every case in every version: (request to broker 2, request to the controller)."""
    numbers = itertools.count(1)
    for key, cases in CASES.items():
        for version in API_SPECS[key].versions:
            for case in cases:
                if version in case.versions:
                    forwarded, direct = (
                        CaseRequest(case, key, version, broker, next(numbers))
                        for broker in (FORWARDING, CONTROLLER)
                    )
                    yield forwarded, direct


REQUESTS: Final = tuple(case_requests())


def drafted_requests() -> Iterator[Pair]:
    """Yield the requests of `case_requests` for drafted listeners, unless a KIP's draft differs."""
    numbers = itertools.count(50_001)
    for pair in REQUESTS:
        if pair[0].case.drafted or not has_same_layout(pair[0].key, pair[0].version):
            continue
        forwarded, direct = (
            dataclasses.replace(request, number=next(numbers), dialect="drafted")
            for request in pair
        )
        yield forwarded, direct


def has_same_layout(key: int, version: int) -> bool:
    """Return True if a version has the same fields in both dialects."""
    shipped, drafted = API_SPECS[key], DRAFTED_SPECS[key]
    return all(
        layout(of_shipped, version) == layout(of_drafted, version)
        for of_shipped, of_drafted in (
            (shipped.request, drafted.request),
            (shipped.response, drafted.response),
        )
    )


def layout(kind: Any, version: int) -> Any:
    """Return a type's fields in a version, as a comparable value."""
    if isinstance(kind, Array):
        return ["array", layout(kind.of, version)]
    if not isinstance(kind, type):
        return kind.name
    return [
        (field.name, version in field.nullable, field.tag, layout(field.type, version))
        for field in fields_of(kind)
        if version in field.versions
    ]


DRAFTED_REQUESTS: Final = tuple(drafted_requests())


class Brokers:
    """Connections to the brokers of one cluster. `call` replaces a closed connection."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: dict[tuple[int, str], Connection] = {}

    def call(
        self, broker: int, key: int, version: int, message: Any, dialect: str = "shipped"
    ) -> bytes | str:
        """Return header and body of the response, or CLOSED."""
        connection = self._open.get((broker, dialect))
        if connection is None:
            address = self._cluster.bootstrap_server(broker, dialect.upper())
            connection = self._open[broker, dialect] = Connection(address)
        response = connection.exchange(encode_message(key, version, message))
        if isinstance(response, str):
            self._open.pop((broker, dialect)).close()
        return response

    def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            connection.close()


@pytest.fixture(scope="module")
def brokers(new_chroot: Callable[[], str]) -> Iterator[Brokers]:
    """Three brokers that know the topics of all cases."""
    with Cluster(
        zookeeper=new_chroot(),
        controller=CONTROLLER,
        properties={
            **BOTH_DIALECTS,
        },
        node_properties={
            broker: {
                "broker.rack": f"rack-{broker}",
                "log.dirs": ",".join(str(log_directories(broker) / name) for name in "ab"),
            }
            for broker in (1, 2, 3)
        },
    ) as cluster:
        connections = Brokers(cluster)
        _create_internal_topics(connections)
        pairs = (*REQUESTS, *DRAFTED_REQUESTS)
        wanted = [request for pair in pairs for request in pair if request.case.topic]
        for batch in _batches(wanted):
            _create(connections, batch)
        _until_known(connections, [*INTERNAL_TOPICS, *(request.topic_name for request in wanted)])
        yield connections
        connections.close()


def _create_internal_topics(brokers: Brokers) -> None:
    """Create the internal topics, with the coordinators that the tables expect."""
    leaders = [
        CreatableReplicaAssignment(*assignment)
        for assignment in enumerate([[n] for n in COORDINATORS])
    ]
    topics = [CreatableTopic(name, -1, -1, leaders) for name in sorted(INTERNAL_TOPICS)]
    message = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
    brokers.call(CONTROLLER, CREATE_TOPICS, 4, message)


def _batches(wanted: list[CaseRequest]) -> Iterator[list[CaseRequest]]:
    for at in range(0, len(wanted), _BATCH):
        yield wanted[at : at + _BATCH]


def _create(brokers: Brokers, batch: list[CaseRequest]) -> None:
    topics = []
    for request in batch:
        topic = request.case.topic
        assert topic is not None
        others = [broker for broker in (1, 2, 3) if broker != request.broker]
        replicas = [request.broker, *others][: topic.replicas]
        topics.append(
            CreatableTopic(
                name=request.topic_name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition, replicas)
                    for partition in range(topic.partitions)
                ],
                configs=[CreatableTopicConfig(*item) for item in topic.configs.items()],
            )
        )
    message = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
    response = brokers.call(CONTROLLER, CREATE_TOPICS, 4, message)
    assert isinstance(response, bytes)
    codes = Counter(t["errorCode"] for t in decode_json(CREATE_TOPICS, 4, response)["topics"])
    assert set(codes) == {0}


def _until_known(brokers: Brokers, names: list[str]) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    message = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    deadline = time.monotonic() + _SEEN_WITHIN_S
    for broker in (1, 2, 3):
        codes = {3}
        while codes != {0} and time.monotonic() < deadline:
            response = brokers.call(broker, METADATA, 4, message)
            assert isinstance(response, bytes)
            codes = {t["errorCode"] for t in decode_json(METADATA, 4, response)["topics"]}
        assert codes == {0}


def name_of(pair: Pair) -> str:
    request = pair[0]
    api = API_SPECS[request.key].name
    return f"{api}-v{request.version}-{request.case.name.replace(' ', '-')}"


@pytest.mark.parametrize("pair", REQUESTS, ids=name_of)
def test_forwarded_and_direct_responses_are_equal_and_match_kafkas(
    brokers: Brokers, pair: Pair
) -> None:
    """The comparison ignores fields that differ between clusters (FREE), such as ids and times."""
    forwarded, direct = (comparable_response(brokers, request) for request in pair)
    assert forwarded == direct


@pytest.mark.parametrize("pair", DRAFTED_REQUESTS, ids=name_of)
def test_drafted_listener_responds_like_a_shipped_one(brokers: Brokers, pair: Pair) -> None:
    """Versions that a drafted listener does not forward get NOT_CONTROLLER from broker 2."""
    forwarded, direct = pair
    at_controller = comparable_response(brokers, direct)
    route = choose_route(
        direct.key,
        direct.version,
        dialect="drafted",
        forwarding_enabled=True,
        broker_is_controller=False,
    )
    if route is not Route.NOT_CONTROLLER:
        assert comparable_response(brokers, forwarded) == at_controller
        return
    message = forwarded.message()
    response = brokers.call(FORWARDING, direct.key, direct.version, message, "drafted")
    if isinstance(response, str):
        assert direct.case.response == CLOSED
        return
    # The code of the whole response can be NONE; the elements have the error.
    body = decode_json(direct.key, direct.version, response)
    codes = error_codes([value for value in body.values() if isinstance(value, list)])
    assert codes <= {NOT_CONTROLLER}, codes


def comparable_response(brokers: Brokers, request: CaseRequest) -> tuple[int, bytes] | str:
    """Send a request, check the response against its case, and return its comparable bytes."""
    response = brokers.call(
        request.broker, request.key, request.version, request.message(), request.dialect
    )
    expected = request.filled(request.case.response)
    if isinstance(response, str) or expected == CLOSED:
        assert response == expected
        return CLOSED
    body = decode_json(request.key, request.version, response)
    assert first_difference(expected, body) is None, (
        f"broker {request.broker}: {first_difference(expected, body)}"
    )
    return comparable_bytes(request, response)


@pytest.mark.parametrize("broker", [CONTROLLER, FORWARDING])
def test_alter_configs_of_a_broker_is_applied_by_that_broker(brokers: Brokers, broker: int) -> None:
    """kafka-configs.sh sends this request.

    A forwarding Kafka accepts it only for the controller's own broker (docs/differences.md,
    `alter-configs-named-broker`).
    """
    for value in ("2", None):
        configs = [alter_configs.AlterableConfig("log.cleaner.threads", value)] if value else []
        resource = alter_configs.AlterConfigsResource(4, str(broker), configs)
        message = alter_configs.AlterConfigsRequest(resources=[resource])
        response = brokers.call(broker, ALTER_CONFIGS, 2, message)
        assert isinstance(response, bytes)
        (row,) = decode_json(ALTER_CONFIGS, 2, response)["responses"]
        assert (row["errorCode"], row["errorMessage"]) == (0, None)
        deadline = time.monotonic() + 30
        while (described := _cleaner_threads(brokers, broker)) != (value or "1"):
            assert time.monotonic() < deadline, described


def _cleaner_threads(brokers: Brokers, broker: int) -> str:
    resource = describe_configs.DescribeConfigsResource(4, str(broker), ["log.cleaner.threads"])
    message = describe_configs.DescribeConfigsRequest(resources=[resource])
    response = brokers.call(broker, DESCRIBE_CONFIGS, 4, message)
    assert isinstance(response, bytes)
    ((config,),) = (r["configs"] for r in decode_json(DESCRIBE_CONFIGS, 4, response)["results"])
    return str(config["value"])


@pytest.mark.parametrize("broker", [CONTROLLER, FORWARDING])
@pytest.mark.parametrize("dialect", ["shipped", "drafted"])
def test_apis_page_lists_the_advertised_versions(
    brokers: Brokers, dialect: str, broker: int
) -> None:
    response = brokers.call(broker, API_VERSIONS, 0, ApiVersionsRequest(), dialect)
    assert isinstance(response, bytes)
    advertised = {
        api_key["apiKey"]: (api_key["minVersion"], api_key["maxVersion"])
        for api_key in decode_json(API_VERSIONS, 0, response)["apiKeys"]
    }
    assert advertised == documented(dialect)
    assert set(advertised) == set(ROUTING_TABLES[dialect])


def documented(dialect: str) -> dict[int, tuple[int, int]]:
    """Return the versions of each API in docs/apis.md, by key."""
    result = {}
    text = APIS_PAGE.read_text(encoding="utf-8").partition("## Unserved APIs")[0]
    for line in text.splitlines():
        if re.match(r"\| `\w+` \|", line):
            _, _, key, versions, route, *_ = (cell.strip() for cell in line.split("|"))
            shipped, _, drafted = versions.partition("; drafted: ")
            if route.startswith("drafted: ") and dialect != "drafted":
                continue
            served = drafted if dialect == "drafted" and drafted else shipped
            first, _, last = served.partition(" to ")
            result[int(key)] = (int(first), int(last))
    return result


def test_cases_cover_every_version_that_needs_no_data_plane() -> None:
    covered: Counter[tuple[int, int]] = Counter((a.key, a.version) for a, _ in REQUESTS)
    keys = set(WITHOUT_DATA_PLANE["shipped"]) - {ENVELOPE}  # only the controller accepts it
    served = {(key, version) for key in keys for version in API_SPECS[key].versions}
    assert served - set(covered) == set()
    assert len(REQUESTS) >= 400
    assert len(DRAFTED_REQUESTS) >= 400


def test_differing_response_is_detected() -> None:
    """The response has a wrong code or text, too many or too few elements, or another name."""
    expected = {"topics": [{"errorCode": 0, "errorMessage": "Topic name…"}]}
    right = {"topics": [{"errorCode": 0, "errorMessage": "Topic name is invalid", "name": "t"}]}
    assert first_difference(expected, right) is None
    assert (
        first_difference(expected, {"topics": [{"errorCode": 0}]}) is None
    )  # a version without errorMessage
    wrong: dict[str, Any]
    for wrong in (
        {"topics": [{"errorCode": 3, "errorMessage": "Topic name"}]},
        {"topics": [{"errorCode": 0, "errorMessage": "Another"}]},
        {"topics": right["topics"] * 2},
        {"topics": []},
        {"topics": None},
    ):
        assert first_difference(expected, wrong) is not None
    request = next(a for a, _ in REQUESTS if (a.key, a.version) == (20, 5))

    def bytes_of(name: str, code: int) -> tuple[int, bytes]:
        results = [DeletableTopicResult(name=name, topic_id=bytes(16), error_code=code)]
        head = encode_response_header(20, 5, 7)
        body = encode_response(20, 5, DeleteTopicsResponse(responses=results))
        return comparable_bytes(request, head + body)

    assert bytes_of(request.topic_name, 3) == bytes_of(request.topic_name, 3)
    assert bytes_of(request.topic_name, 3) != bytes_of(request.topic_name, 0)
    assert bytes_of(request.topic_name, 3) != bytes_of("another-name", 3)
