"""A live Kafka 3.9.1's answers about topics, replayed against decisions and local answers.

Each recorded case runs from its beginning against one image: creates, deletions and new
partitions pass the controller's decision, are replayed into the image and answered; Metadata,
DescribeCluster and ApiVersions are answered from a cache that was fed with that image. Compared is
the decoded answer but for what a cluster is free to choose (the README of the recordings).
"""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_request, encode_request, encode_response
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.json_form import decode_body
from broker_proxy.apis.api_versions import ApiVersions
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.cluster_view import ClusterView
from broker_proxy.apis.describe_cluster import DescribeCluster
from broker_proxy.apis.metadata import Metadata
from broker_proxy.metadata_cache import MetadataCache
from broker_proxy.routing import Route
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import TopicRemovalRecord
from cluster_model.update_metadata import full_parts
from cluster_model.znodes import decode_uuid
from controller.apis.base import WaitFor
from controller.apis.create_partitions import CreatePartitions
from controller.apis.create_topics import CreateTopics
from controller.apis.delete_topics import DeleteTopics
from controller.apis.topic_config_rules import TopicConfigRules
from envelope.messages import MetadataUpdate
from tests.unit.request_contexts import a_context

RECORDINGS = Path(__file__).parent.parent / "recordings"
CASES = (
    "create_topics",
    "delete_topics",
    "create_partitions",
    "metadata",
    "describe_cluster",
    "api_versions",
)
NO_ID = "A" * 22
# What a cluster is free to choose; equal only in being there or not.
FREE = {
    "throttleTimeMs",
    "host",
    "port",
    "clusterId",
    "controllerId",
    "topicId",
    "leaderId",
    "leaderEpoch",
    "isrNodes",
    "replicaNodes",
    "finalizedFeaturesEpoch",
}


def recorded_cases() -> list[Any]:
    """Return (steps of all versions of one API) by recording: later versions see earlier topics."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in ("direct-open", "forwarded-open"):
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
            for line in lines:
                case = json.loads(line)
                api, _, _ = case["case"].rpartition("-v")
                if api in CASES:
                    found.setdefault(f"{name}-{api}", []).extend(case["steps"])
    return [pytest.param(steps, id=name) for name, steps in found.items()]


def static_config() -> BrokerConfig:
    return BrokerConfig.from_properties({"broker.id": "1", "zookeeper.connect": "localhost:1"})


def three_brokers() -> Map[int, BrokerRegistration]:
    """The brokers of the recordings: rack-1 to rack-3."""
    return Map(
        {
            i: BrokerRegistration(
                i,
                100 + i,
                (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9091 + i),),
                f"rack-{i}",
            )
            for i in (1, 2, 3)
        }
    )


@dataclass
class Cluster:
    """A controller and a broker without anything between them."""

    image: MetadataImage = field(
        default_factory=lambda: MetadataImage(zxid=1, controller_epoch=1, brokers=three_brokers())
    )
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def __post_init__(self) -> None:
        effective = EffectiveBrokerConfig.of(static_config())
        rules = TopicConfigRules(lambda: effective)
        self.cache = MetadataCache(lambda: None)
        view = ClusterView(
            self.cache,
            broker_id=1,
            cluster_id="flEykXXSSGupJnOY6sVHZA",
            controller_says={},
            choose=lambda count: 0,
        )
        self.writes: dict[int, Any] = {
            19: CreateTopics(static_config(), check_configs=rules.check, show_configs=rules.show),
            20: DeleteTopics(static_config()),
            37: CreatePartitions(),
        }
        self.local: dict[int, Any] = {
            3: Metadata(view),
            18: ApiVersions({"shipped": dict.fromkeys((3, 18, 19, 20), Route.LOCAL)}, lambda: 0),
            60: DescribeCluster(view),
        }

    def write(self, key: int, version: int, message: Any) -> Any:
        """Decide, replay, finish the deletions, answer."""
        context = a_context(key, version, random=self.random)
        api = self.writes[key]
        decision = api.decide(context, message, self.image, {})
        outcomes = {}
        for decided in decision.elements:
            outcomes[decided.element] = decided.outcome
            self.image = self.image.replay([*decided.records, *decided.following])
        self.image = self.image.replay([TopicRemovalRecord(n) for n in self.image.deletions])
        waits = decision.wait.what is not WaitFor.NOTHING and decision.wait.timeout_ms <= 0
        late = frozenset(e for e in decision.wait.topics if waits and outcomes[e].succeeded)
        return api.answer(context, message, outcomes, self.image, late)

    async def read(self, key: int, version: int, message: Any, request: ClientRequest) -> Any:
        """Feed the broker's cache and have it answer."""
        self.image = replace(self.image, zxid=self.image.zxid + 1)
        parts = list(full_parts(self.image, 1))
        for count, part in enumerate(parts):
            body = encode_request(6, 8, part)
            last = count == len(parts) - 1
            assert self.cache.apply(MetadataUpdate(1, 1, self.image.zxid, body, count == 0, last))
        try:
            return await self.local[key].answer(request, message)
        except ApiError as refused:
            return error_response(key, message, version, refused.error, refused.message)

    async def ask(self, header: RequestHeader, message: Any) -> bytes:
        """Return the body of the answer."""
        key, version = header.api_key, header.api_version
        if key in self.writes:
            return encode_response(key, version, self.write(key, version, message))
        connection = ClientConnectionInfo(
            "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
        )
        request = ClientRequest("r", header, b"", b"", connection, 0)
        answer = await self.read(key, version, message, request)
        return answer if isinstance(answer, bytes) else encode_response(key, version, answer)


def normal(value: Any, step: dict[str, Any], path: str = "") -> Any:
    """An answer without what may differ; lists sorted where their order is not promised."""
    if isinstance(value, dict):
        return {
            key: "*"
            if key in FREE and v not in (None, "", [], 0, -1, NO_ID)
            else normal(v, step, f"{path}.{key}" if path else key)
            for key, v in sorted(value.items())
        }
    if isinstance(value, list):
        items = [normal(v, step, f"{path}.*") for v in value]
        if path == "brokers" or path in step.get("unordered", []):
            items.sort(key=lambda v: json.dumps(v, sort_keys=True))
        return items
    return value


def ours_by_choice(step: dict[str, Any]) -> list[int] | None:
    """The codes that we answer on purpose where Kafka's differ (kafka-semantics 9.7)."""
    body = step["body"]
    if step["api"] == "CREATE_TOPICS":
        replicas = [a["brokerIds"] for t in body["topics"] for a in t["assignments"]]
        if any(not set(ids) & {1, 2, 3} or min(ids) < 0 for ids in replicas):
            return [39] * len(body["topics"])
    if step["api"] == "DELETE_TOPICS":
        # Kafka's controller was still at work on an answered deletion: here it never is.
        late = [r["errorCode"] == 3 and t["name"] is None for t, r in deletions(step)]
        if any(late):
            return [
                100 if was else r["errorCode"]
                for was, (_, r) in zip(late, deletions(step), strict=True)
            ]
    return None


def deletions(step: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return list(zip(step["body"].get("topics", []), step["response"]["responses"], strict=False))


def with_our_ids(message: Any, ids: dict[bytes, bytes]) -> Any:
    """Replace the ids of Kafka's cluster by those of ours."""
    for topic in getattr(message, "topics", None) or ():
        if getattr(topic, "topic_id", None) in ids:
            topic.topic_id = ids[topic.topic_id]
    return message


def learn_ids(recorded: dict[str, Any], ours: dict[str, Any], ids: dict[bytes, bytes]) -> None:
    for theirs, here in zip(recorded.get("topics", []), ours.get("topics", []), strict=False):
        if NO_ID not in (theirs.get("topicId", NO_ID), here.get("topicId", NO_ID)):
            ids[decode_uuid(theirs["topicId"])] = decode_uuid(here["topicId"])


@pytest.mark.parametrize("steps", recorded_cases())
async def test_every_recorded_answer_is_given_again(steps: list[dict[str, Any]]) -> None:
    """The same requests in the same order get the answers that Kafka gave."""
    cluster, ids = Cluster(), dict[bytes, bytes]()
    differences = []
    for number, step in enumerate(steps):
        data = bytes.fromhex(step["request_hex"])
        header, at = decode_request_header(data)
        key, version = header.api_key, header.api_version
        message = with_our_ids(decode_request(key, version, data, at), ids)
        ours = decode_body(key, "response", version, await cluster.ask(header, message))
        recorded = step["response"]
        learn_ids(recorded, ours, ids)
        if step.get("set_up"):
            continue
        expected = ours_by_choice(step)
        if expected is not None:
            results = ours.get("topics") or ours["responses"]
            assert [r["errorCode"] for r in results] == expected, step["body"]
            continue
        if key == 18:  # What is served differs by design; nothing migrates to KRaft here.
            recorded["apiKeys"], ours["apiKeys"] = bool(recorded["apiKeys"]), bool(ours["apiKeys"])
            recorded.pop("zkMigrationReady", None)
        want, got = normal(recorded, step), normal(ours, step)
        if want != got:
            differences.append((number, step["body"], want, got))
    assert not differences, "\n".join(map(str, differences))
