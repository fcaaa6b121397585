"""A live Kafka 3.9.1's answers about client quotas and SCRAM credentials, replayed.

A recording runs from its beginning against one image; describe requests read what is stored
then. Compared is the whole answer, and at the end what Kafka's own ZooKeeper held.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.json_form import decode_body
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.describe_client_quotas import DescribeClientQuotas
from broker_proxy.apis.describe_user_scram_credentials import DescribeUserScramCredentials
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import ConfigResource
from cluster_model.znodes import ConfigZnode
from controller.apis.alter_client_quotas import AlterClientQuotas
from controller.apis.alter_user_scram_credentials import AlterUserScramCredentials
from controller.apis.base import AdminApi
from tests.unit.authorizing import saying_to_everybody
from tests.unit.request_contexts import a_context

RECORDINGS = Path(__file__).parent.parent / "recordings"
ASKED = {48, 49, 50, 51}
WRITES: Mapping[int, AdminApi] = {
    api.api_key: api for api in (AlterClientQuotas(), AlterUserScramCredentials())
}
CONNECTION = ClientConnectionInfo(
    "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
)


@dataclass
class Cluster:
    """A controller and a broker without anything between them; everything is seen at once."""

    allowed: bool = True
    image: MetadataImage = field(default_factory=MetadataImage)

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return self.image.config(entity_type, entity_name)

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        found = self.image.configs.items()
        return dict(sorted((r, c) for r, c in found if r.entity_type == entity_type))

    def write(self, key: int, version: int, message: Any) -> Any:
        """Decide, replay and answer."""
        context = a_context(key, version, self.allowed)
        api = WRITES[key]
        decision = api.decide(context, message, self.image, {})
        for decided in decision.elements:
            self.image = self.image.replay(decided.records)
        outcomes = {decided.element: decided.outcome for decided in decision.elements}
        return api.answer(context, message, outcomes, self.image, frozenset())

    async def ask(self, header: RequestHeader, message: Any) -> Any:
        """Return the decoded body of the answer."""
        key, version = header.api_key, header.api_version
        if key in WRITES:
            answer = self.write(key, version, message)
        else:
            allow = saying_to_everybody(self.allowed)
            reads: dict[int, Any] = {
                48: DescribeClientQuotas(self, allow),
                50: DescribeUserScramCredentials(self, allow),
            }
            request = ClientRequest("r", header, b"", b"", CONNECTION, 0)
            try:
                answer = await reads[key].answer(request, message)
            except ApiError as refused:
                answer = error_response(key, message, version, refused.error, refused.message)
        return decode_body(key, "response", version, encode_response(key, version, answer))


def recorded_steps(recording: str) -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDINGS / f"{recording}.jsonl.gz", "rt") as lines:
        for line in lines:
            for step in json.loads(line)["steps"]:
                if "api" in step and int(step["request_hex"][:4], 16) in ASKED:
                    yield step


async def answer_to(cluster: Cluster, step: dict[str, Any]) -> Any:
    data = bytes.fromhex(step["request_hex"])
    header, at = decode_request_header(data)
    return await cluster.ask(header, decode_request(header.api_key, header.api_version, data, at))


def in_order(value: Any, step: dict[str, Any], path: str = "") -> Any:
    """An answer with the lists sorted whose order is not promised."""
    if isinstance(value, dict):
        return {k: in_order(v, step, f"{path}.{k}" if path else k) for k, v in value.items()}
    if isinstance(value, list):
        items = [in_order(each, step, f"{path}.*") for each in value]
        if path in step.get("unordered", []):
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return items
    return value


def without_migration(step: dict[str, Any]) -> bool:
    """Without forwarding another broker than the controller was asked, and told so."""
    return step["to"] == "other" and '"errorCode": 41' in json.dumps(step["response"])


@pytest.mark.parametrize("recording", ["direct-open", "forwarded-open"])
async def test_every_recorded_answer_and_znode_is_made_again(recording: str) -> None:
    """The same requests in the same order: the same answers, and the same content at the end."""
    cluster, compared = Cluster(), 0
    for step in recorded_steps(recording):
        if without_migration(step):
            continue
        ours = await answer_to(cluster, step)
        assert in_order(ours, step) == in_order(step["response"], step), step["body"]
        compared += 1
    assert compared >= 128
    with gzip.open(RECORDINGS / f"znodes-{recording}.jsonl.gz", "rt") as lines:
        znodes = {each["path"]: each["data"] for each in map(json.loads, lines)}
    below = ("/config/users/", "/config/clients/", "/config/ips/")
    kafkas = {path: json.loads(data) for path, data in znodes.items() if path.startswith(below)}
    ours = {
        ConfigZnode.path(resource): json.loads(ConfigZnode.encode(configs))
        for resource, configs in cluster.image.configs.items()
    }
    assert ours == kafkas
    assert len(kafkas) >= 10


async def test_who_may_not_is_told_as_kafka_tells() -> None:
    """Every recorded refusal is given again; where Kafka never answers, a refusal comes too."""
    compared = 0
    for step in recorded_steps("direct-secured"):
        ours = await answer_to(Cluster(allowed=False), step)
        if step.get("timeout"):
            assert (ours["errorCode"], ours["errorMessage"], ours["results"]) == (31, None, [])
        elif "31" in json.dumps(step["response"]):
            assert ours == step["response"], step["body"]
        else:
            continue
        compared += 1
    assert compared == 7
