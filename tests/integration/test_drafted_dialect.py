"""A listener that speaks the KIPs' drafts, compared with a shipped listener by raw frames.

Broker 1 is the controller. The policy protects the topic `kept` and rejects internal topics.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import encode_body
from bridgehead.kafka_wire.messages.envelope import EnvelopeRequest
from bridgehead.raw_client.blocking import CLOSED, Connection
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import DefaultPrincipalSerde
from tests.integration.drafted_listeners import (
    BOTH_DIALECTS,
    BUMPED,
    SET,
    Listener,
    creation,
    deletion,
    described,
)
from tests.integration.processes import wait_until

METADATA, FIND_COORDINATOR, API_VERSIONS, CREATE, DELETE = 3, 10, 18, 19, 20
DELETE_RECORDS, DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL = 21, 32, 33, 44
QUOTAS, ENVELOPE = 49, 58
RENEW_TOKEN, EXPIRE_TOKEN = 39, 40
ALTER_TOPICS, LIST_ACLS, ALTER_ACLS = 10001, 10002, 10003
NONE, TIMED_OUT, NOT_CONTROLLER, VIOLATION, UNKNOWN = 0, 7, 41, 44, -1
INVALID_TOPIC, TOPIC_DENIED, CLUSTER_DENIED, INVALID_REQUEST = 17, 29, 31, 42
INVALID_PARTITIONS, INVALID_FACTOR, EXISTS, UNKNOWN_TOPIC = 37, 38, 36, 3
CODE = """
from bridgehead.policy import PolicyViolationException, TopicManagementPolicy


class Rules(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.requested_state.internal or request.topic == "refused":
            raise PolicyViolationException(f"not {request.topic}")

    def validate_alter_topic(self, request, cluster):
        if request.topic == "kept" and request.requested_state.num_partitions > 2:
            raise PolicyViolationException("kept small")

    def validate_delete_topic(self, request, cluster):
        if request.topic == "kept":
            raise PolicyViolationException("kept")

    def validate_delete_records(self, request, cluster):
        if request.topic == "kept":
            raise PolicyViolationException(f"kept: {request.deleted_message_offsets}")
"""


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("drafted")
    (folder / "their_code.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        running = Cluster(
            zookeeper=new_chroot(),
            brokers=3,
            controller=1,
            properties={
                **BOTH_DIALECTS,
                # A shipped listener that is not the inter-broker listener.
                "listeners": f"{BOTH_DIALECTS['listeners']},OTHER://:0",
                "listener.security.protocol.map": (
                    f"{BOTH_DIALECTS['listener.security.protocol.map']},OTHER:PLAINTEXT"
                ),
                "topic.management.policy.class.name": "their_code.Rules",
                "offsets.topic.num.partitions": "2",
                "transaction.state.log.num.partitions": "2",
                "default.replication.factor": "2",
                "auto.create.topics.enable": "false",
            },
        )
        with running:
            yield running


@pytest.mark.parametrize(("key", "version", "body"), BUMPED)
def test_only_the_controller_accepts_a_bumped_version_and_older_ones_are_forwarded(
    drafted: Listener, shipped: Listener, key: int, version: int, body: dict[str, Any]
) -> None:
    """KIP-590 §Change AlterConfig Request Routing. A shipped listener forwards every version."""
    assert drafted.codes(2, key, version, body) == [NOT_CONTROLLER]
    assert drafted.codes(1, key, version, body) == [NONE]
    for older in range(version):
        assert drafted.codes(2, key, older, body) == [NONE]
        assert shipped.codes(2, key, older, body) == [NONE]
    if key != INCREMENTAL:
        assert shipped.codes(2, key, version, body) == [NONE]


def node_log(listener: Listener) -> str:
    """Return the log of broker 1, the controller."""
    return (listener.cluster.data_dir / "nodes" / "1" / "node.log").read_text()


def stored_threads(drafted: Listener, broker: int) -> str:
    """Return the value of log.cleaner.threads in a broker's DescribeConfigs response."""
    named = {"resourceType": 4, "resourceName": str(broker), "configurationKeys": None}
    response = drafted.call(broker, DESCRIBE_CONFIGS, 0, {"resources": [named]})
    (row,) = response["results"]
    return str(next(c["value"] for c in row["configs"] if c["name"] == "log.cleaner.threads"))


@pytest.mark.parametrize("key", [ALTER_CONFIGS, INCREMENTAL])
@pytest.mark.parametrize("validate_only", [True, False])
def test_the_controller_alters_another_brokers_configs_in_every_version(
    drafted: Listener, shipped: Listener, key: int, validate_only: bool
) -> None:
    """KIP-590: other brokers return NOT_CONTROLLER for v2, and forward v0 and v1."""
    threads = "2" if key == ALTER_CONFIGS else "3"
    config: dict[str, Any] = {"name": "log.cleaner.threads", "value": threads}
    config |= {"configOperation": 0} if key == INCREMENTAL else {}
    before = stored_threads(drafted, 2)
    body: dict[str, Any] = {"validateOnly": validate_only}

    def altered(listener: Listener, to: int, version: int, named: str) -> list[int]:
        resource = {"resourceType": 4, "resourceName": named, "configs": [config]}
        return listener.codes(to, key, version, {**body, "resources": [resource]})

    assert altered(drafted, 1, 2, "2") == [NONE]
    assert altered(drafted, 2, 2, "2") == altered(drafted, 3, 2, "2") == [NOT_CONTROLLER]
    assert altered(drafted, 1, 2, "9") == [INVALID_REQUEST]
    for version in (0, 1):
        assert [altered(drafted, to, version, "2") for to in (1, 2, 3)] == [[NONE]] * 3
        shipped_codes = [altered(shipped, to, version, "2") for to in (1, 3)]
        assert shipped_codes == [[INVALID_REQUEST], [INVALID_REQUEST]]
    expected = before if validate_only else threads
    wait_until(lambda: stored_threads(drafted, 2) == expected)


def test_a_shipped_listener_closes_the_connection_on_a_version_that_never_shipped(
    drafted: Listener, shipped: Listener
) -> None:
    """The test sends IncrementalAlterConfigs v2 and an API of KIP-4."""
    v2 = encode_body(INCREMENTAL, "request", 2, SET, "drafted")
    assert shipped.send(2, INCREMENTAL, 2, v2) == CLOSED
    nothing = encode_body(ALTER_TOPICS, "request", 0, {"topics": []}, "drafted")
    assert shipped.send(1, ALTER_TOPICS, 0, nothing) == CLOSED
    assert drafted.call(1, ALTER_TOPICS, 0, {"topics": []}) == {"topics": []}


def test_an_envelope_of_a_client_is_rejected(drafted: Listener, shipped: Listener) -> None:
    """KIP-590 §EnvelopeRequest Handling. The client pretends to be another broker."""
    envelope = {
        "requestHeader": "AAA=",
        "requestData": "AAA=",
        "principalInfo": "AAA=",
        "clientHostIP": "127.0.0.1",
        "listenerName": "DRAFTED",
        "securityProtocol": "PLAINTEXT",
    }
    for broker in (1, 2):
        response = drafted.call(broker, ENVELOPE, 0, envelope)
        assert response == {"responseHeader": "", "responseData": "", "errorCode": CLUSTER_DENIED}
    frame = encode_body(ENVELOPE, "request", 0, envelope, "drafted")
    assert shipped.send(1, ENVELOPE, 0, frame) == CLOSED


def test_a_shipped_envelope_is_executed_on_the_listener_between_brokers_only(
    drafted: Listener, cluster: Cluster
) -> None:
    """The controller executes it; another broker returns NOT_CONTROLLER.

    A shipped listener that is not the inter-broker listener closes the connection.
    """
    inner = creation("enveloped", validateOnly=False)
    header = RequestHeader(CREATE, 7, 5, "inside")
    envelope = EnvelopeRequest(
        request_data=encode_request_header(header) + encode_body(CREATE, "request", 7, inner),
        request_principal=DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "alice")),
        client_host_address=bytes([127, 0, 0, 1]),
    )
    frame = encode_request_header(RequestHeader(ENVELOPE, 0, 7, "test"))
    frame += encode_request(ENVELOPE, 0, envelope)

    def respond(broker: int, listener: str) -> bytes | str:
        with Connection(cluster.bootstrap_server(broker, listener)) as connection:
            return connection.exchange(frame)

    assert respond(1, "OTHER") == respond(2, "OTHER") == CLOSED
    assert described(drafted, 1, "enveloped")["enveloped"]["errorCode"] == UNKNOWN_TOPIC
    assert opened(respond(2, "SHIPPED")).error_code == NOT_CONTROLLER
    response = opened(respond(1, "SHIPPED"))
    assert response.error_code == NONE
    _, at = decode_response_header(CREATE, 7, response.response_data)
    (created,) = decode_response(CREATE, 7, response.response_data, at).topics
    assert (created.name, created.error_code) == ("enveloped", NONE)


def opened(response: bytes | str) -> Any:
    """Return the response to an Envelope."""
    assert isinstance(response, bytes), response
    _, at = decode_response_header(ENVELOPE, 0, response)
    return decode_response(ENVELOPE, 0, response, at)


def test_api_versions_lists_the_apis_of_the_dialect(drafted: Listener, shipped: Listener) -> None:
    """The test compares the API keys and their newest versions."""
    newest = [
        {api_key["apiKey"]: api_key["maxVersion"] for api_key in response["apiKeys"]}
        for response in (broker.call(2, API_VERSIONS, 0, {}) for broker in (drafted, shipped))
    ]
    ours, theirs = newest
    assert set(ours) - set(theirs) == {ALTER_TOPICS, LIST_ACLS, ALTER_ACLS}
    assert set(theirs) <= set(ours)
    assert {key: (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]} == {
        INCREMENTAL: (2, 1),
        RENEW_TOKEN: (3, 2),
        EXPIRE_TOKEN: (3, 2),
    }


@pytest.mark.parametrize("version", [0, 2, 7])
def test_topics_are_created_at_the_controller_only(
    drafted: Listener, shipped: Listener, version: int
) -> None:
    """KIP-4 §Create Topics Request 1. A shipped listener forwards the request."""
    fields: dict[str, Any] = {"validateOnly": False} if version else {}
    name = f"created-{version}"
    assert drafted.codes(2, CREATE, version, creation(name, **fields)) == [NOT_CONTROLLER]
    assert drafted.codes(1, CREATE, version, creation(name, **fields)) == [NONE]
    assert shipped.codes(2, CREATE, version, creation(f"{name}-too", **fields)) == [NONE]


def test_a_duplicate_topic_has_a_single_code(drafted: Listener, shipped: Listener) -> None:
    """KIP-4 §Create Topics Request 2. The controller logs the error and creates the other topic."""
    body = creation("twice", "once", "twice")
    assert sorted(drafted.codes(1, CREATE, 0, body)) == [NONE, INVALID_REQUEST]
    assert "CREATE_TOPICS: INVALID_REQUEST for 'twice': Found multiple entries" in node_log(drafted)
    assert "INVALID_REQUEST for 'once'" not in node_log(drafted)
    assert sorted(shipped.codes(1, CREATE, 0, body)) == [EXISTS, INVALID_REQUEST, INVALID_REQUEST]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"assignment": {0: [1]}}, INVALID_REQUEST),  # numbers and an assignment
        ({"partitions": -1}, INVALID_PARTITIONS),
        ({"factor": -1}, INVALID_FACTOR),
        ({"partitions": -1, "factor": -1}, INVALID_PARTITIONS),  # no numbers, no assignment
        ({"partitions": -1, "factor": -1, "assignment": {0: [2, 1], 1: [3, 1]}}, NONE),
    ],
)
def test_numbers_or_an_assignment_must_be_defined(
    drafted: Listener, fields: dict[str, Any], code: int
) -> None:
    """KIP-4 §Create Topics Request 4. The first replica of an assignment becomes the leader.

    The numbers of partitions and replicas have no defaults.
    """
    name = f"defined-{abs(hash(str(fields)))}"
    assert drafted.codes(1, CREATE, 0, creation(name, **fields)) == [code]
    line = f"INVALID_REQUEST for '{name}': Both numPartitions or replicationFactor and replicasAss"
    assert (line in node_log(drafted)) is (code == INVALID_REQUEST)
    if code == NONE:
        partitions = described(drafted, 1, name)[name]["partitions"]
        leaders = {p["partitionIndex"]: (p["leaderId"], p["replicaNodes"]) for p in partitions}
        assert leaders == {0: (2, [2, 1]), 1: (3, [3, 1])}


def test_shipped_listeners_use_the_brokers_defaults(shipped: Listener) -> None:
    """The defaults are num.partitions and default.replication.factor. Even version 0 uses them."""
    assert shipped.codes(2, CREATE, 0, creation("default", factor=-1)) == [NONE]
    (partition,) = described(shipped, 1, "default")["default"]["partitions"]
    assert len(partition["replicaNodes"]) == 2


def exists(listener: Listener, name: str) -> bool:
    return bool(described(listener, 1, name)[name]["errorCode"] == NONE)


def is_gone(listener: Listener, name: str) -> bool:
    return not exists(listener, name)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_a_timeout_a_valid_write_is_started_and_an_invalid_one_rejected(
    drafted: Listener, shipped: Listener, timeout_ms: int
) -> None:
    """KIP-4 §Create Topics Request 6, §Delete Topics Request 7. Shipped listeners do the same."""
    for listener in (drafted, shipped):
        name = f"triggered{timeout_ms}-{listener.dialect}"
        body = creation(name, "bad name", timeout_ms=timeout_ms)
        assert listener.codes(1, CREATE, 0, body) == [TIMED_OUT, INVALID_TOPIC]
        wait_until(partial(exists, drafted, name))
        gone = deletion(name, timeout_ms=timeout_ms)
        assert listener.codes(1, DELETE, 0, gone) == [TIMED_OUT]
        wait_until(partial(is_gone, drafted, name))


def test_topics_are_deleted_at_the_controller_only(drafted: Listener, shipped: Listener) -> None:
    """KIP-4 §Delete Topics Request 1 and 2. On a drafted listener a duplicate has one result."""
    assert drafted.codes(1, CREATE, 0, creation("gone", "gone-too")) == [NONE, NONE]
    assert drafted.codes(2, DELETE, 0, deletion("gone")) == [NOT_CONTROLLER]
    assert drafted.codes(1, DELETE, 0, deletion("gone", "gone")) == [NONE]
    assert shipped.codes(2, DELETE, 0, deletion("gone-too", "gone-too")) == [NONE, NONE]


def test_deleting_a_missing_topic_returns_invalid_topic_exception(
    drafted: Listener, shipped: Listener
) -> None:
    """KIP-4 §Delete Topics Request 3."""
    for version in (0, 1, 4):
        assert drafted.codes(1, DELETE, version, deletion("nothing")) == [INVALID_TOPIC]
        assert shipped.codes(1, DELETE, version, deletion("nothing")) == [UNKNOWN_TOPIC]
    dry = deletion("nothing", validateOnly=True)
    for version in (2, 3):
        assert drafted.codes(1, DELETE, version, dry) == [INVALID_TOPIC]


def test_metadata_distinguishes_all_topics_from_none(drafted: Listener, shipped: Listener) -> None:
    """KIP-4 §Metadata Schema: null requests all topics, an empty list requests no topics."""
    drafted.codes(1, CREATE, 0, creation("seen"))
    for listener in (drafted, shipped):
        every = listener.call(1, METADATA, 1, {"topics": None})
        assert "seen" in {topic["name"] for topic in every["topics"]}
        assert listener.call(1, METADATA, 1, {"topics": []})["topics"] == []
        assert {broker["rack"] for broker in every["brokers"]} == {"rack-1", "rack-2", "rack-3"}
        assert every["controllerId"] == 1
        assert {topic["name"]: topic["isInternal"] for topic in every["topics"]}["seen"] is False


def test_a_policys_text_is_returned_from_version_1_on(drafted: Listener, shipped: Listener) -> None:
    """KIP-108: v0 returns the code, v1 also the text. validate_only creates nothing."""
    for listener in (drafted, shipped):
        assert listener.codes(1, CREATE, 0, creation("refused")) == [VIOLATION]
        dry = creation("refused", "validated", validateOnly=True)
        (rejected, validated) = listener.call(1, CREATE, 1, dry)["topics"]
        assert (rejected["errorCode"], rejected["errorMessage"]) == (VIOLATION, "not refused")
        assert (validated["errorCode"], validated["errorMessage"]) == (NONE, None)
        assert described(drafted, 1, "validated")["validated"]["errorCode"] == UNKNOWN_TOPIC


def create_kept(drafted: Listener) -> None:
    """Create the topic that the policy protects."""
    assert drafted.codes(
        1, CREATE, 0, creation("kept", assignment={0: [1, 2]}, partitions=-1, factor=-1)
    ) in ([NONE], [EXISTS])


def test_kip_201s_delete_topics_has_validate_only_and_error_messages(
    drafted: Listener, shipped: Listener
) -> None:
    """The draft has validateOnly and errorMessage from v2 on.

    v0, v1 and the shipped v2 have no error code for policies.
    """
    create_kept(drafted)
    assert drafted.codes(1, CREATE, 0, creation("dry")) == [NONE]
    for version in (2, 3, 4, 5):
        dry = deletion("kept", "dry", validateOnly=True)
        both = drafted.call(1, DELETE, version, dry)["responses"]
        assert [(response["errorCode"], response.get("errorMessage")) for response in both] == [
            (VIOLATION, "kept"),
            (NONE, None),
        ]
        assert described(drafted, 1, "dry")["dry"]["errorCode"] == NONE
    assert drafted.codes(1, DELETE, 2, deletion("dry", validateOnly=False)) == [NONE]
    for version in (0, 1):
        assert drafted.codes(1, DELETE, version, deletion("kept")) == [UNKNOWN]
        assert shipped.codes(1, DELETE, version, deletion("kept")) == [UNKNOWN]
    assert "a policy rejects kept, with error UNKNOWN_SERVER_ERROR because version 1" in node_log(
        drafted
    )
    assert shipped.codes(1, DELETE, 2, deletion("kept")) == [UNKNOWN]
    (row,) = shipped.call(2, DELETE, 5, deletion("kept"))["responses"]
    assert (row["errorCode"], row["errorMessage"]) == (VIOLATION, "kept")


def test_kip_201s_delete_records_has_error_messages(drafted: Listener, shipped: Listener) -> None:
    """In the draft, v1 and later return the message, and v0 has no code for policies."""
    create_kept(drafted)
    topics = [{"name": "kept", "partitions": [{"partitionIndex": 0, "offset": 0}]}]
    body = {"topics": topics, "timeoutMs": 1000}
    for version in (1, 2):
        dry = drafted.call(1, DELETE_RECORDS, version, {**body, "validateOnly": True})
        (row,) = dry["topics"][0]["partitions"]
        assert (row["errorCode"], row["errorMessage"]) == (VIOLATION, "kept: {0: 0}")
    assert drafted.codes(1, DELETE_RECORDS, 0, body) == [UNKNOWN]
    assert "deletion of records of kept (version 0 has no error code for this): kept: {0: 0}" in (
        node_log(drafted)
    )
    assert drafted.codes(1, DELETE_RECORDS, 2, body) == [VIOLATION]
    for version in (0, 1, 2):
        assert shipped.codes(1, DELETE_RECORDS, version, body) == [VIOLATION]
    elsewhere = drafted.call(3, DELETE_RECORDS, 1, {**body, "validateOnly": False})
    (row,) = elsewhere["topics"][0]["partitions"]
    assert (row["errorCode"], bool(row["errorMessage"])) == (6, True)


def test_topics_are_altered_at_the_controller_only(drafted: Listener) -> None:
    """KIP-4 §Alter Topic Request: it changes partitions and replicas, and the policy applies."""

    def body(name: str, partitions: int = -1, factor: int = -1, **assignments: list[int]) -> Any:
        assignment = [{"partition": int(p[1:]), "replicas": r} for p, r in assignments.items()]
        topic = {"topic": name, "partitions": partitions, "replicationFactor": factor}
        return {"topics": [{**topic, "replicaAssignment": assignment}]}

    def replicas() -> dict[int, list[int]]:
        partitions = described(drafted, 1, "altered")["altered"]["partitions"]
        return {p["partitionIndex"]: p["replicaNodes"] for p in partitions}

    made = creation("altered", partitions=-1, factor=-1, assignment={0: [1, 2]})
    assert drafted.codes(1, CREATE, 0, made) == [NONE]
    grow = body("altered", 2)
    assert drafted.codes(2, ALTER_TOPICS, 0, grow) == [NOT_CONTROLLER]
    assert drafted.codes(1, ALTER_TOPICS, 0, grow) == [NONE]
    wait_until(lambda: len(replicas()) == 2)
    assert drafted.codes(1, ALTER_TOPICS, 0, body("altered", 1)) == [INVALID_PARTITIONS]
    both = body("altered", p0=[3, 2], p2=[2, 3])
    assert drafted.codes(1, ALTER_TOPICS, 0, both) == [NONE]
    wait_until(lambda: replicas().get(0) == [3, 2] and replicas().get(2) == [2, 3])
    assert drafted.codes(1, ALTER_TOPICS, 0, body("altered", -1, 3)) == [NONE]
    wait_until(lambda: [len(replica) for replica in replicas().values()] == [3, 3, 3])
    assert drafted.codes(1, ALTER_TOPICS, 0, body("nothing", 2)) == [INVALID_TOPIC]
    create_kept(drafted)
    assert drafted.codes(1, ALTER_TOPICS, 0, body("kept", 3)) == [VIOLATION]


def test_internal_topics_created_on_a_drafted_listener_bypass_the_policy(
    drafted: Listener, shipped: Listener
) -> None:
    """KIP-590 §Internal CreateTopicsRequest Routing. A client's bypassPolicy is ignored."""
    flagged = creation("__transaction_state", "refused", validateOnly=False, bypassPolicy=True)
    assert drafted.codes(1, CREATE, 7, flagged) == [VIOLATION, VIOLATION]
    for _ in range(3):
        response = shipped.call(2, FIND_COORDINATOR, 0, {"key": "g"})
        assert response["errorCode"] == 15
    log = drafted.cluster.data_dir / "nodes" / "2" / "node.log"
    wait_until(lambda: "__consumer_offsets was not created: POLICY_VIOLATION" in log.read_text())
    wait_until(lambda: drafted.call(2, FIND_COORDINATOR, 0, {"key": "g"})["errorCode"] == NONE)
    assert shipped.call(2, FIND_COORDINATOR, 0, {"key": "g"})["errorCode"] == NONE
    assert described(drafted, 1, "__transaction_state")["__transaction_state"]["errorCode"] != NONE
