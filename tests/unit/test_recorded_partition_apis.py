"""A live Kafka 3.9.1's answers about reassignments, elections and features, given again.

Each recorded case runs from its beginning against one image: requests pass the controller's
decision, are replayed into the image and answered, and reassignments that were begun are brought
to their end, as the controller's loop does between two requests.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any, Final

import pytest
from immutables import Map

from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.headers import decode_request_header
from bridgehead.kafka_wire.json_form import decode_body
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, MetadataImage
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.base import AdminApi
from controller.apis.create_topics import CreateTopics
from controller.apis.elect_leaders import ElectLeaders
from controller.apis.list_partition_reassignments import ListPartitionReassignments
from controller.apis.topic_config_rules import TopicConfigRules
from controller.apis.update_features import UpdateFeatures
from controller.background import complete_reassignments
from tests.unit.request_contexts import a_context

RECORDINGS: Final = Path(__file__).parent.parent / "recordings"
CASES: Final = ("reassignments", "elect_leaders", "update_features")


def recorded_cases() -> list[Any]:
    """Return the steps of one case by recording."""
    found = []
    for name in ("direct-open", "forwarded-open"):
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
            for case in map(json.loads, lines):
                api, _, _ = case["case"].rpartition("-v")
                if (api or case["case"]) in CASES:
                    found.append(pytest.param(case["steps"], id=f"{name}-{case['case']}"))
    return found


class Controller:
    """Decides, replays, finishes and answers, without anything around it."""

    def __init__(self) -> None:
        brokers = Map({i: BrokerRegistration(i, 100 + i, ()) for i in (1, 2, 3)})
        self.image = MetadataImage(zxid=1, controller_epoch=1, brokers=brokers)
        static = BrokerConfig.from_properties({"broker.id": "1", "zookeeper.connect": "h:1"})
        effective = EffectiveBrokerConfig.of(static)
        rules = TopicConfigRules(lambda: effective)
        apis: tuple[AdminApi, ...] = (
            CreateTopics(static, check_configs=rules.check, show_configs=rules.show),
            AlterPartitionReassignments(),
            ListPartitionReassignments(),
            ElectLeaders(),
            UpdateFeatures(),
        )
        self._apis = {api.api_key: api for api in apis}
        self._random = random.Random(7)

    def ask(self, data: bytes) -> Any:
        """Return the answer in JSON's form."""
        header, at = decode_request_header(data)
        key, version = header.api_key, header.api_version
        request = decode_request(key, version, data, at)
        context = a_context(key, version, random=self._random)
        api = self._apis[key]
        decision = api.decide(context, request, self.image, {})
        outcomes = {decided.element: decided.outcome for decided in decision.elements}
        for decided in decision.elements:
            self.image = self.image.replay([*decided.records, *decided.following])
        message = api.answer(context, request, outcomes, self.image, frozenset())
        self._finish()
        return decode_body(key, "response", version, encode_response(key, version, message))

    def _finish(self) -> None:
        for records in complete_reassignments(lambda: self.image, sorted(self.image.topics)):
            self.image = self.image.replay(records)


def normal(value: Any, step: dict[str, Any], path: str = "") -> Any:
    """An answer with its lists sorted where their order is not promised."""
    if isinstance(value, dict):
        return {k: normal(v, step, f"{path}.{k}" if path else k) for k, v in value.items()}
    if isinstance(value, list):
        items = [normal(v, step, f"{path}.*") for v in value]
        if path in step.get("unordered", []):
            items.sort(key=lambda v: json.dumps(v, sort_keys=True))
        return items
    return value


@pytest.mark.parametrize("steps", recorded_cases())
def test_every_recorded_answer_about_partitions_is_given_again(steps: list[Any]) -> None:
    """The same requests in the same order get the answers that Kafka gave."""
    controller = Controller()
    differences = []
    for number, step in enumerate(steps):
        ours = controller.ask(bytes.fromhex(step["request_hex"]))
        want, got = normal(step["response"], step), normal(ours, step)
        if want != got and step["api"] != "CREATE_TOPICS":
            differences.append((number, step["body"], want, got))
    assert not differences, "\n".join(map(str, differences))


def test_reassigned_partitions_end_where_kafkas_ended() -> None:
    """Assignment, leader and ISR of the recorded znodes; the target leads and nothing is left."""
    controller = Controller()
    (steps,) = next(case.values for case in recorded_cases() if "reassignments" in case.id)
    for step in steps:
        controller.ask(bytes.fromhex(step["request_hex"]))
    znodes = {}
    with gzip.open(RECORDINGS / "znodes-direct-open.jsonl.gz", "rt") as lines:
        for znode in map(json.loads, lines):
            znodes[znode["path"]] = znode
    for name in ("reassign-a", "reassign-b"):
        path, topic = f"/brokers/topics/{name}", controller.image.topics[name]
        content = json.loads(znodes[path]["data"])
        theirs = {int(p): tuple(replicas) for p, replicas in content["partitions"].items()}
        assert dict(enumerate(topic.assignment)) == theirs
        assert not topic.adding
        assert not topic.removing
        for partition, ours in enumerate(topic.states):
            state = json.loads(znodes[f"{path}/partitions/{partition}/state"]["data"])
            assert (ours.leader, ours.isr) == (state["leader"], tuple(state["isr"]))
