"""Whatever another program writes into a znode, a controller can load, publish and serve the rest.

What cannot be used is skipped and named. `tests/unit/chaos/test_odd_znodes_on_a_cluster.py` puts
the same values under a running cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from bridgehead.authorizer import ResourcePattern
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.describe_acls import DescribeAclsRequest
from bridgehead.kafka_wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterRequest
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.kafka_wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from bridgehead.kafka_wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.codec import decode_message, encode_message
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigResource, ProducerIds
from controller.loop.background_jobs import (
    Elections,
    complete_reassignments,
    delete_topics,
    elect_leaders,
    remove_expired_tokens,
    repair_topics,
)
from controller.store.load import Loaded, load
from tests.unit.controller.in_process_cluster import BROKERS, InProcessCluster
from tests.unit.controller.odd_znodes import ID, VALID, as_bytes, odd_trees
from zookeeper_client.wire import Read, ReadData, ReadResult, Stat, ZnodeData

STAT = Stat(*[0] * 11)
PROPERTIES = (
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\nsuper.users=User:admin\n"
    "delegation.token.secret.key=secret"
)
KEYS: dict[type[Any], ApiKey] = {
    MetadataRequest: ApiKey.METADATA,
    DescribeClusterRequest: ApiKey.DESCRIBE_CLUSTER,
    DescribeConfigsRequest: ApiKey.DESCRIBE_CONFIGS,
    DescribeAclsRequest: ApiKey.DESCRIBE_ACLS,
    DescribeClientQuotasRequest: ApiKey.DESCRIBE_CLIENT_QUOTAS,
    DescribeUserScramCredentialsRequest: ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeDelegationTokenRequest: ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ListPartitionReassignmentsRequest: ApiKey.LIST_PARTITION_REASSIGNMENTS,
    CreateTopicsRequest: ApiKey.CREATE_TOPICS,
    IncrementalAlterConfigsRequest: ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
TOPIC = 2
TOKEN = VALID["/delegation_token/tokens/odd"]
KEPT = {"partitions": {"0": [1, 2]}, "topic_id": ID[:-1] + "g", "version": 3}
STATE = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 3, "isr": [1, 2]}


def registration(broker: int) -> dict[str, Any]:
    names = ("PLAINTEXT", "SASL_PLAINTEXT")
    endpoints = [f"{name}://localhost:{9090 + broker}" for name in names]
    protocols = {name: name for name in names}
    return {"endpoints": endpoints, "listener_security_protocol_map": protocols, "version": 5}


def sound() -> dict[str, bytes | None]:
    """Return the znodes of a sound cluster."""
    documents: dict[str, Any] = {
        **{f"/brokers/ids/{broker}": registration(broker) for broker in BROKERS},
        "/brokers/topics/kept": KEPT,
        "/brokers/topics/kept/partitions": "",
        "/brokers/topics/kept/partitions/0": "",
        "/brokers/topics/kept/partitions/0/state": STATE,
        "/config/topics/kept": {"version": 1, "config": {"retention.ms": "1234"}},
        "/config/users/kept": {"version": 1, "config": {"consumer_byte_rate": "4321"}},
        "/kafka-acl/Topic/kept": VALID["/kafka-acl/Topic/odd"],
        "/delegation_token/tokens/kept": VALID["/delegation_token/tokens/odd"]
        | {"tokenId": "kept"},
    }
    return {path: as_bytes(document) for path, document in documents.items()}


def load_from(znodes: dict[str, bytes | None]) -> Loaded:
    """Load a tree of znodes. Parents without a content of their own exist, too."""
    children: dict[str, set[str]] = {}
    for path in znodes:
        while path:
            parent, _, name = path.rpartition("/")
            children.setdefault(parent, set()).add(name)
            path = parent

    async def read(reads: Sequence[Read]) -> list[ReadResult]:
        results: list[ReadResult] = []
        for read in reads:
            if read.path not in znodes and read.path not in children:
                results.append(None)
            elif isinstance(read, ReadData):
                results.append(ZnodeData(znodes.get(read.path), STAT.pack()))
            else:
                results.append(list(children.get(read.path, ())))
        return results

    return asyncio.run(load(read, 5))


class Served(InProcessCluster):
    """A cluster in this process, with the image of a controller that has just loaded it."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(PROPERTIES)
        self.invalid = loaded.invalid
        self.image = replace(loaded.image, zxid=self.image.zxid)
        self._publish()
        self._run_jobs(loaded)
        self._publish()

    def _run_jobs(self, loaded: Loaded) -> None:
        def image() -> MetadataImage:
            return self.image

        names = sorted(self.image.topics)
        new_id = iter(range(10, 10_000))
        for job in (
            repair_topics(
                image,
                loaded.orphan_markers,
                loaded.without_id,
                lambda: next(new_id).to_bytes(16),
            ),
            elect_leaders(image, names, Elections(lambda _image, _name: True)),
            complete_reassignments(image, names, stores_records=False),
            delete_topics(image, sorted(self.image.deletions)),
            remove_expired_tokens(image, 1_700_000_000_000),
        ):
            for records in job:
                self.replay(*records)

    def ask(self, version: int, request: Any) -> Any:
        """Send a request to broker 2; return the response."""
        key = KEYS[type(request)]
        response = self.call(2, "admin", encode_message(key, version, request))
        assert isinstance(response, bytes)
        return decode_message(key, version, response)


def check_service(cluster: Served) -> None:
    """Check that every version of every API that lists objects responds, and serves `kept`."""
    for version in API_SPECS[ApiKey.METADATA].versions:
        listed = cluster.ask(version, MetadataRequest(topics=None if version else []))
        assert {1, 2, 3} <= {broker.node_id for broker in listed.brokers}
        (topic,) = (topic for topic in listed.topics if topic.name == "kept")
        assert (topic.error_code, topic.partitions[0].leader_id) == (0, 2)
    kept = DescribeConfigsResource(TOPIC, "kept", ["retention.ms"])
    responses = {}
    for request in (
        DescribeClusterRequest(),
        DescribeConfigsRequest([kept]),
        DescribeAclsRequest(1, None, 1, None, None, 1, 1),
        DescribeUserScramCredentialsRequest(users=None),
        DescribeDelegationTokenRequest(owners=None),
        ListPartitionReassignmentsRequest(topics=None),
    ):
        for version in API_SPECS[KEYS[type(request)]].versions:
            if isinstance(request, DescribeAclsRequest):  # version 0 has literal patterns only
                request.pattern_type_filter = 1 if version else 3
            response = responses[type(request)] = cluster.ask(version, request)
            assert getattr(response, "error_code", 0) == 0, (version, response)
    (described,) = responses[DescribeConfigsRequest].results
    assert [entry.value for entry in described.configs] == ["1234"]
    assert "kept" in {entry.resource_name for entry in responses[DescribeAclsRequest].resources}
    tokens = responses[DescribeDelegationTokenRequest].tokens
    assert "kept" in {token.token_id for token in tokens}
    # With assignments: as in Kafka, without them one broker without a rack rejects every creation.
    replicas = [CreatableReplicaAssignment(0, [3, 1])]
    quotas = cluster.ask(1, DescribeClientQuotasRequest())
    if quotas.error_code:  # As in Kafka, a quota that is not a number fails this request.
        assert any("is not a number: Desc" in text for text in cluster.invalid)
    else:
        assert "kept" in {entry.entity[0].entity_name for entry in quotas.entries}
    created = cluster.ask(5, CreateTopicsRequest([CreatableTopic("new", -1, -1, replicas)]))
    assert created.topics[0].error_code == 0
    changes = [AlterableConfig("retention.ms", 0, "99")]
    resource = AlterConfigsResource(TOPIC, "kept", changes)
    changed = cluster.ask(1, IncrementalAlterConfigsRequest([resource]))
    assert changed.responses[0].error_code == 0


def check(odd: dict[str, bytes | None]) -> Loaded:
    valid = {path: as_bytes(document) for path, document in VALID.items()}
    loaded = load_from(sound() | valid | odd)
    check_service(Served(loaded))
    return loaded


def test_valid_znodes_are_all_loaded() -> None:
    assert check({}).invalid == ()


def test_each_part_of_the_state_is_loaded() -> None:
    """Also the versions of znodes that the controller will overwrite, and what is derived."""
    image = check({}).image
    assert image.controller_epoch == 5
    assert sorted(image.brokers) == [*BROKERS, 77]
    assert image.topics["kept"].assignment == ((1, 2),)
    assert dict(image.topic_names) == {(1).to_bytes(16): "odd", (2).to_bytes(16): "kept"}
    assert dict(image.colliding) == {"odd": {"odd"}, "kept": {"kept"}}
    assert image.deletions == {"odd"}
    assert not image.unreadable
    assert image.config("topics", "kept") == {"retention.ms": "1234"}
    assert set(image.config_versions) == set(image.configs)
    assert dict(image.user_clients) == {"odd": {"odd"}}
    assert dict(image.mutation_rates) == {ConfigResource("users", "odd"): 5.0}
    literal = {ResourcePattern("TOPIC", "LITERAL", name) for name in ("odd", "kept")}
    assert set(image.acl_versions) == {*literal, ResourcePattern("TOPIC", "PREFIXED", "odd")}
    assert set(image.tokens) == {"odd", "kept"}
    assert image.producer_ids == ProducerIds(2000, 0)


@pytest.mark.parametrize("content", [None, b"{", b'{"partitions":{"0":[]}}'])
def test_a_topic_with_an_invalid_znode_is_unreadable_but_not_deleted(content: bytes | None) -> None:
    image = check({"/brokers/topics/odd": content, "/brokers/topics/a b": b"{"}).image
    assert image.unreadable == {"odd"}
    assert "odd" not in image.topics


LONG = "x" * 40_000
REGISTRATION, STATE_PATH = VALID["/brokers/ids/77"], "/brokers/topics/odd/partitions/0/state"
ODD = [
    ("/brokers/ids/77", REGISTRATION | {"rack": 5}),
    ("/brokers/ids/77", REGISTRATION | {"rack": {"a": 1}}),
    ("/brokers/ids/77", REGISTRATION | {"endpoints": [f"PLAINTEXT://h:{2**40}"]}),
    ("/brokers/ids/77", REGISTRATION | {"endpoints": [f"PLAINTEXT://{LONG}:1"]}),
    ("/brokers/ids/77", REGISTRATION | {"listener_security_protocol_map": {"PLAINTEXT": [1]}}),
    (f"/brokers/ids/{2**40}", REGISTRATION),
    ("/brokers/ids/\u0663", REGISTRATION),
    (f"/bridgehead/outcomes/{10**22 - 1}", VALID["/bridgehead/outcomes/0000000007"]),
    ("/bridgehead/floors/1-zy", "9" * 5_000),
    (f"/bridgehead/floors/{'9' * 5_000}-zz", "1"),
    (f"/brokers/topics/{LONG}", VALID["/brokers/topics/odd"]),
    ("/brokers/topics/odd", VALID["/brokers/topics/odd"] | {"partitions": {"0": [2**40]}}),
    ("/brokers/topics/odd", VALID["/brokers/topics/odd"] | {"partitions": {"0": []}}),
    *((STATE_PATH, VALID[STATE_PATH] | {key: 2**40}) for key in ("leader", "leader_epoch")),
    (STATE_PATH, VALID[STATE_PATH] | {"controller_epoch": 2**40}),
    (STATE_PATH, VALID[STATE_PATH] | {"isr": [2**40]}),
    (STATE_PATH, VALID[STATE_PATH] | {"leader_epoch": 2**31 - 1}),
    (f"/kafka-acl/Topic/{LONG}", VALID["/kafka-acl/Topic/odd"]),
    ("/config/users/odd", {"version": 1, "config": {"SCRAM-SHA-256": ["secret"]}}),
    (f"/config/users/{LONG}", VALID["/config/users/odd"]),
    (
        "/delegation_token/tokens/odd",
        VALID["/delegation_token/tokens/odd"] | {"maxTimestamp": 1e30},
    ),
]


@pytest.mark.parametrize(("path", "document"), ODD, ids=range(len(ODD)))
def test_a_znode_with_an_odd_value_is_skipped_and_named(path: str, document: Any) -> None:
    invalid = check({path: as_bytes(document)}).invalid
    assert any(text.startswith(path[:150]) for text in invalid), invalid
    assert all(len(text) < 600 for text in invalid)
    assert "secret" not in str(invalid)


@given(odd_trees())
def test_the_rest_is_served_whatever_the_znodes_contain(odd: dict[str, bytes | None]) -> None:
    check(odd)
