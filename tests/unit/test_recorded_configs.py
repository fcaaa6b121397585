"""A live Kafka 3.9.1's answers about configs, replayed against both halves of the config APIs.

Each recorded case runs from its beginning: topics are put into an image, alter requests pass the
receiving broker's split, the controller's decision and the merge, describe requests read what is
stored then. Compared is the whole answer, order included
(but for BROKER configs); documentation texts are our own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.json_form import decode_body
from broker_proxy.apis.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.describe_configs import DescribeConfigs
from broker_proxy.logger_levels import LoggerLevels
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import TopicRecord
from cluster_model.topic_configs import TopicDefaults, effective_topic_configs
from controller.apis.alter_configs import AlterConfigs
from controller.apis.base import RequestContext
from controller.apis.config_changes import ConfigChanges
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from tests.unit.authorizing import saying_to_everybody
from tests.unit.request_contexts import a_context

RECORDINGS = Path(__file__).parent.parent / "recordings"
# Whom a case is put to: the controller, or another broker that forwards.
RECEIVERS = {"direct-open": 1, "forwarded-open": 2}
BROKER = 4
# Asked so soon after a change that the broker's memory did not have it yet (kafka-semantics 3.1).
STALE_ANSWERS = {
    (2, "incremental_alter_configs-v1", 35),
    (2, "incremental_alter_configs-v1", 36),
}
ALTER_CONFIGS = 33
DESCRIBE_CONFIGS = 32

# docs/differences.md: `alter-configs-named-broker`.
REFUSED_BY_THE_CONTROLLER = "Unexpected broker id, expected 1, but received 2"


def config_cases() -> list[Any]:
    """Return (receiver, case) of every recorded case about configs."""
    found = []
    for name, receiver in RECEIVERS.items():
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
            for line in lines:
                case = json.loads(line)
                if "_configs-v" in case["case"]:
                    found.append(pytest.param(receiver, case, id=f"{name}-{case['case']}"))
    return found


@dataclass
class Cluster:
    """Two brokers' worth of the config APIs over one image; everything stored is seen at once."""

    receiver: int
    image: MetadataImage = field(default_factory=MetadataImage)
    zookeeper_connect: str = ""
    loggers: LoggerLevels = field(default_factory=LoggerLevels)

    def static(self, broker_id: int) -> BrokerConfig:
        properties = {
            "broker.id": str(broker_id),
            "zookeeper.connect": self.zookeeper_connect,
            "zookeeper.session.timeout.ms": "6000",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        return BrokerConfig.from_properties(properties)

    def current(self) -> EffectiveBrokerConfig:
        return EffectiveBrokerConfig.of(
            self.static(self.receiver),
            self.image.config("brokers", "<default>"),
            self.image.config("brokers", str(self.receiver)),
        )

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return self.image.config(entity_type, entity_name)

    def has_topic(self, name: str) -> bool:
        return name in self.image.topics

    def create(self, topic: dict[str, Any]) -> None:
        configs = {config["name"]: config["value"] for config in topic["configs"]}
        record = TopicRecord(topic["name"], topic["name"].encode()[:16], ((1,),), configs)
        self.image = self.image.replay([record])

    async def ask(self, frame: bytes) -> dict[str, Any]:
        """Put one recorded frame, header and body, and return the answer as JSON."""
        header, body_at = decode_request_header(frame)
        api_key, version = header.api_key, header.api_version
        message = decode_request(api_key, version, frame, body_at)
        response = await self.answer(api_key, version, message)
        return decode_body(
            api_key, "response", version, encode_response(api_key, version, response)
        )

    async def answer(self, api_key: int, version: int, message: Any) -> Any:
        request = client_request(api_key, version)
        if api_key == DESCRIBE_CONFIGS:
            api = DescribeConfigs(self.current, self, self, self.loggers, saying_to_everybody(True))
            return await api.answer(request, message)
        checks = ConfigChecks(self.current, self, self.loggers, saying_to_everybody(True))
        changes = ConfigChanges(self.static(1))
        if api_key == ALTER_CONFIGS:
            split, api = AlterConfigsSplit(checks), AlterConfigs(changes)
        else:
            split, api = IncrementalAlterConfigsSplit(checks), IncrementalAlterConfigs(changes)
        local, left = await split.split(request, message)
        forwarded = None
        if left is not None:
            decision = api.decide(context(api_key, version), left, self.image, {})
            for decided in decision.elements:
                self.image = self.image.replay(decided.records)
            outcomes = {decided.element: decided.outcome for decided in decision.elements}
            forwarded = api.answer(
                context(api_key, version), left, outcomes, self.image, frozenset()
            )
        return split.merge(request, message, local, forwarded)


def client_request(api_key: int, version: int) -> ClientRequest:
    connection = ClientConnectionInfo(
        "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
    )
    header = RequestHeader(api_key, version, 1, "test")
    return ClientRequest("r", header, b"", b"", connection, 0)


def context(api_key: int, version: int) -> RequestContext:
    return a_context(api_key, version, client_id="test")


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out Kafka's documentation, and the order of BROKER configs, which differs by run."""
    for result in answer.get("results", []):
        if result["resourceType"] == BROKER:
            result["configs"].sort(key=lambda config: config["name"])
        for config in result["configs"]:
            if config.get("documentation"):
                config["documentation"] = "(ours)"
    return answer


def recorded_zookeeper(case: dict[str, Any]) -> str:
    for step in case["steps"]:
        for result in (step.get("response") or {}).get("results", []):
            for config in result["configs"]:
                if config["name"] == "zookeeper.connect":
                    return str(config["value"])
    return "127.0.0.1:2181"


@pytest.mark.parametrize(("receiver", "case"), config_cases())
async def test_every_recorded_answer_about_configs_is_ours(
    receiver: int, case: dict[str, Any]
) -> None:
    """Alter, incremental alter and describe answer as the live Kafka did, on both paths."""
    cluster = Cluster(receiver, zookeeper_connect=recorded_zookeeper(case))
    compared = 0
    for number, step in enumerate(case["steps"]):
        if step["api"] == "CREATE_TOPICS":
            for topic in step["body"]["topics"]:
                cluster.create(topic)
            continue
        answer = await cluster.ask(bytes.fromhex(step["request_hex"]))
        if step.get("timeout"):
            # The live Kafka said nothing; we say what IncrementalAlterConfigs says.
            assert {row["errorCode"] for row in answer["responses"]} == {42}
            continue
        if (receiver, case["case"], number) in STALE_ANSWERS:
            continue
        expected = comparable(step["response"])
        for row in expected.get("responses", ()):
            if row["errorMessage"] == REFUSED_BY_THE_CONTROLLER:
                row |= {"errorCode": 0, "errorMessage": None}
        assert (number, comparable(answer)) == (number, expected)
        compared += 1
    assert compared >= 19


def created_topics() -> list[Any]:
    """Return (configs asked, configs answered) of every recorded successful creation."""
    found = []
    with gzip.open(RECORDINGS / "direct-open.jsonl.gz", "rt") as lines:
        for line in lines:
            for step in json.loads(line)["steps"]:
                if step.get("api") != "CREATE_TOPICS" or not step.get("response"):
                    continue
                asked = {topic["name"]: topic for topic in step["body"]["topics"]}
                for answered in step["response"]["topics"]:
                    if answered["errorCode"] == 0 and answered.get("configs"):
                        found.append((asked[answered["name"]]["configs"], answered["configs"]))
    return found


def test_every_recorded_creation_shows_the_configs_in_force() -> None:
    """The 36 entries of CreateTopics v5+ are ours, in Kafka's order, values and sources alike."""
    defaults = TopicDefaults.of(EffectiveBrokerConfig.of(BrokerConfig.from_properties({})))
    topics = created_topics()
    assert len(topics) > 20
    for asked, answered in topics:
        overrides = {config["name"]: config["value"] for config in asked}
        ours = [
            {
                "name": entry.name,
                "value": entry.value,
                "readOnly": entry.read_only,
                "configSource": entry.source.value,
                "isSensitive": entry.sensitive,
            }
            for entry in effective_topic_configs(overrides, defaults)
        ]
        assert answered == ours
