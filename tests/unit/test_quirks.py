"""Misbehaviour of a real Kafka: away unless it is asked for, and then just as Kafka's."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from bridgehead.kafka_wire.messages.create_acls import AclCreationResult, CreateAclsResponse
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
)
from bridgehead.kafka_wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from bridgehead.kafka_wire.messages.update_features import UpdateFeaturesResponse
from broker_proxy.apis.base import NeverAnsweredError
from broker_proxy.apis.describe_user_scram_credentials import DescribeUserScramCredentials
from broker_proxy.apis.offset_fetch import OffsetFetch
from cluster_model import quirks
from cluster_model.quirks import (
    DELETE_BY_ID_TELLS_EXISTENCE,
    DESCRIBE_SCRAM_DENIED_HANGS,
    EVERY_QUIRK,
    NOT_BROUGHT_BACK,
    OFFSET_FETCH_NO_GROUPS_HANGS,
    QUIRK_LIST,
    UNUSABLE_ASSIGNMENT_ACCEPTED,
    DumpedRequest,
    denial_text,
    quirks_of,
    tell_denial,
)
from cluster_model.records import TopicRecord
from controller.apis.delete_topics import DeleteTopics
from tests.unit.authorizing import saying_to_everybody
from tests.unit.coordinating_broker import CoordinatingBroker, a_request
from tests.unit.test_topic_deletion import by_id, deleted
from tests.unit.topic_decisions import (
    ID,
    config,
    context,
    create_topics,
    creation,
    image,
    only,
    with_topic,
    without,
)

ROOT = Path(__file__).parents[2]


def test_one_name_brings_one_quirk_and_kafkas_version_all() -> None:
    assert quirks_of({}) == frozenset()
    one = quirks_of({"bridgehead.quirks": f" {OFFSET_FETCH_NO_GROUPS_HANGS} ,"})
    assert one == {OFFSET_FETCH_NO_GROUPS_HANGS}
    every = quirks_of({"bridgehead.quirks": EVERY_QUIRK})
    assert every == {quirk.name for quirk in QUIRK_LIST}


def test_every_quirk_has_its_difference_and_one_place_in_the_code() -> None:
    """And what is not brought back has its reason, by the name of a difference too."""
    rows = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    sources = {
        path: path.read_text(encoding="utf-8")
        for folder in ("broker_proxy", "controller")
        for path in (ROOT / folder).rglob("*.py")
    }
    constants = {value: name for name, value in vars(quirks).items() if isinstance(value, str)}
    for quirk in QUIRK_LIST:
        assert f"`{quirk.name}`" in rows, f"no difference says that {quirk.name} brings it back"
        asked = re.compile(rf"\b{constants[quirk.name]} in ")
        assert sum(len(asked.findall(text)) for text in sources.values()) == 1, quirk.name
    for row in NOT_BROUGHT_BACK:
        assert f"`{row}`" in rows


async def test_all_credentials_asked_for_without_the_right_are_never_answered() -> None:
    """Only when no user is named: whoever names one is told."""
    everybody = DescribeUserScramCredentialsRequest(users=None)
    somebody = DescribeUserScramCredentialsRequest(users=[UserName("alice")])
    denied: Any = (object(), saying_to_everybody(False))
    odd = DescribeUserScramCredentials(*denied, quirks=frozenset({DESCRIBE_SCRAM_DENIED_HANGS}))
    with pytest.raises(NeverAnsweredError):
        await odd.answer(a_request(50, 0), everybody)
    for api, request in (
        (odd, somebody),
        (DescribeUserScramCredentials(*denied), everybody),
    ):
        with pytest.raises(ApiError) as refused:
            await api.answer(a_request(50, 0), request)
        assert refused.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_offsets_of_no_group_are_never_answered() -> None:
    """From version 8 on, which can ask for many."""
    broker = CoordinatingBroker()
    asked_for = frozenset({OFFSET_FETCH_NO_GROUPS_HANGS})
    odd = OffsetFetch(broker.coordinators, saying_to_everybody(True), asked_for)
    with pytest.raises(NeverAnsweredError):
        await odd.answer(a_request(9, 8), OffsetFetchRequest(groups=[]))
    one = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g")])
    assert len((await odd.answer(a_request(9, 8), one)).groups) == 1


@pytest.mark.parametrize("replicas", [[], [-1], [9]], ids=["none", "negative", "unknown"])
def test_a_topic_that_nobody_can_lead_is_created(replicas: list[int]) -> None:
    """Its partition has no state: whoever waits for a leader waits in vain."""
    asked = creation(CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, replicas)], []))
    refused = only(create_topics().decide(context(7), asked, image(), {}))
    assert refused.outcome.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    odd = create_topics(bridgehead_quirks=UNUSABLE_ASSIGNMENT_ACCEPTED)
    accepted = only(odd.decide(context(7), asked, image(), {}))
    assert accepted.outcome.succeeded
    (record,) = accepted.records
    assert isinstance(record, TopicRecord)
    assert record.assignment == (tuple(replicas),)
    assert image().replay([record]).topics["t"].states[0].leader == -1


def test_a_deletion_by_id_tells_which_ids_exist() -> None:
    """Who may not describe the topic: 29 for one that is there, 100 for one that is not."""
    asks = context(6, without("DESCRIBE TOPIC"))
    odd = DeleteTopics(config(bridgehead_quirks=DELETE_BY_ID_TELLS_EXISTENCE))
    assert deleted(by_id(ID), with_topic("t"), asks, api=odd)[1] == [(29, None)]
    assert deleted(by_id(ID), image(), asks, api=odd)[1] == [(100, None)]
    assert deleted(by_id(ID), with_topic("t"), asks)[1] == [(100, None)]


def test_a_denial_shows_what_kafkas_shows() -> None:
    """The texts of two recordings, numbers and hashes aside: asked here, and forwarded."""
    here = DumpedRequest("127.0.0.1:1-127.0.0.1:2-3", "SASL_PLAINTEXT", "SASL_PLAINTEXT", "0a", 43)
    told = {denial_text(here, None), denial_text(here, here)}
    nothing_kept = denial_text(replace(here, size=None), None)
    recorded = {
        text
        for kind in ("direct", "forwarded")
        for line in gzip.open(ROOT / f"tests/recordings/{kind}-secured.jsonl.gz", "rt")  # noqa: SIM115
        for step in json.loads(line)["steps"]
        if step.get("api") in ("LIST_PARTITION_REASSIGNMENTS", "DESCRIBE_ACLS")
        if (text := (step.get("response") or {}).get("errorMessage") or "").startswith("Request ")
    }
    assert {_plain(text) for text in (*told, nothing_kept)} == {_plain(t) for t in recorded}


def _plain(text: str) -> str:
    return re.sub(r"Session@[0-9a-f]+|\d+", "N", text)


def test_the_text_of_a_denial_goes_where_kafkas_goes() -> None:
    """At the top or beside each element, and only beside code 31, of the APIs that dump."""
    whole = AlterPartitionReassignmentsResponse(error_code=31, error_message="x", responses=[])
    tell_denial(45, whole, "dump")
    assert whole.error_message == "dump"
    each = CreateAclsResponse(results=[AclCreationResult(31, "x"), AclCreationResult(42, "bad")])
    tell_denial(30, each, "dump")
    assert [result.error_message for result in each.results] == ["dump", "bad"]
    other = UpdateFeaturesResponse(error_code=31, error_message="x", results=[])
    tell_denial(57, other, "dump")
    assert other.error_message == "x"
