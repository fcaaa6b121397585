"""Quirks are off by default; an enabled quirk behaves as in Kafka."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from bridgehead.kafka_wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
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
from broker_proxy.apis.admin.describe_user_scram_credentials import DescribeUserScramCredentials
from broker_proxy.apis.groups.group_ports import NoGroups
from broker_proxy.apis.groups.offset_fetch import OffsetFetch
from broker_proxy.client_request import NeverRespondedError
from cluster_model import quirks
from cluster_model.image import MetadataImage
from cluster_model.quirks import (
    DELETE_BY_ID_TELLS_EXISTENCE,
    DESCRIBE_SCRAM_DENIED_HANGS,
    EVERY_QUIRK,
    OFFSET_FETCH_NO_GROUPS_HANGS,
    QUIRK_LIST,
    UNSUPPORTED_QUIRKS,
    UNUSABLE_ASSIGNMENT_ACCEPTED,
    DumpedRequest,
    denial_text,
    quirks_of,
    set_denial_message,
)
from controller.apis.base import Results
from controller.apis.create_acls import CreateAcls
from controller.envelopes.denial_dumps import with_denial_dumps
from controller.envelopes.open import OpenedEnvelope
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker
from tests.unit.controller.request_contexts import a_context
from tests.unit.controller.transcripts import check

ROOT = Path(__file__).parents[3]


def test_a_quirk_is_enabled_by_its_name_or_by_kafkas_version() -> None:
    assert quirks_of({}) == frozenset()
    one = quirks_of({"bridgehead.quirks": f" {OFFSET_FETCH_NO_GROUPS_HANGS} ,"})
    assert one == {OFFSET_FETCH_NO_GROUPS_HANGS}
    every = quirks_of({"bridgehead.quirks": EVERY_QUIRK})
    assert every == {quirk.name for quirk in QUIRK_LIST}


def test_every_quirk_is_documented_and_used_once() -> None:
    """Misbehaviours that no quirk enables (UNSUPPORTED_QUIRKS) are documented, too."""
    rows = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    sources = {
        path: path.read_text(encoding="utf-8")
        for folder in ("broker_proxy", "controller")
        for path in (ROOT / folder).rglob("*.py")
    }
    constants = {value: name for name, value in vars(quirks).items() if isinstance(value, str)}
    for quirk in QUIRK_LIST:
        assert f"`{quirk.name}`" in rows, f"docs/differences.md has no {quirk.name}"
        use = re.compile(rf"\b{constants[quirk.name]} in ")
        assert sum(len(use.findall(text)) for text in sources.values()) == 1, quirk.name
    for row in UNSUPPORTED_QUIRKS:
        assert f"`{row}`" in rows


async def test_describing_all_credentials_without_the_right_gets_no_response() -> None:
    """The quirk applies only if the request names no user."""
    all_users = DescribeUserScramCredentialsRequest(users=None)
    named_users = DescribeUserScramCredentialsRequest(users=[UserName("alice")])
    credentials: Any = object()
    no_client = authorize_every_client(False)
    with_quirk = DescribeUserScramCredentials(
        credentials, no_client, quirks=frozenset({DESCRIBE_SCRAM_DENIED_HANGS})
    )
    with pytest.raises(NeverRespondedError):
        await with_quirk.handle(a_request(50, 0), all_users)
    for api, request in (
        (with_quirk, named_users),
        (DescribeUserScramCredentials(credentials, no_client), all_users),
    ):
        with pytest.raises(ApiError) as rejected:
            await api.handle(a_request(50, 0), request)
        assert rejected.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_fetching_offsets_of_no_group_gets_no_response() -> None:
    """The quirk applies from version 8 on, because these versions take several groups."""
    broker = CoordinatingBroker()
    enabled = frozenset({OFFSET_FETCH_NO_GROUPS_HANGS})
    with_quirk = OffsetFetch(
        NoGroups(broker.coordinators), broker.coordinators, authorize_every_client(True), enabled
    )
    with pytest.raises(NeverRespondedError):
        await with_quirk.handle(a_request(9, 8), OffsetFetchRequest(groups=[]))
    one = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g")])
    assert len((await with_quirk.handle(a_request(9, 8), one)).groups) == 1


def test_topics_without_a_possible_leader_are_created() -> None:
    """The partitions have no state znode and so no leader: the request waits until its timeout."""
    check(f"""
    > properties bridgehead.quirks={UNUSABLE_ASSIGNMENT_ACCEPTED}
    > create t assign=0:none / u assign=0:-1 / v assign=0:9
    t: NONE
      topic t none
    u: NONE
      topic u -1
    v: NONE
      topic v 9
    waits for LEADERS: t u v
    > show v
    assignment v 9
    state v-0 leader=-1 isr=none epochs=0,-1
    """)


def test_a_deletion_by_id_reveals_which_ids_exist() -> None:
    check(f"""
    > properties bridgehead.quirks={DELETE_BY_ID_TELLS_EXISTENCE}
    > topic t 1
    > delete id:t id:u deny=DESCRIBE:TOPIC
    id:dC0tLS0tLS0tLS0tLS0tLQ: TOPIC_AUTHORIZATION_FAILED
    id:dS0tLS0tLS0tLS0tLS0tLQ: UNKNOWN_TOPIC_ID
    """)


def test_a_denial_has_kafkas_text() -> None:
    """Except for numbers and hashes, direct and forwarded requests get the texts of Kafka."""
    here = DumpedRequest("127.0.0.1:1-127.0.0.1:2-3", "SASL_PLAINTEXT", "SASL_PLAINTEXT", "0a", 43)
    texts = {denial_text(here, None), denial_text(here, here)}
    not_forwarded = denial_text(replace(here, size=None), None)
    recorded = {
        text
        for kind in ("direct", "forwarded")
        for line in gzip.open(ROOT / f"tests/recordings/{kind}-secured.jsonl.gz", "rt")  # noqa: SIM115
        for step in json.loads(line)["steps"]
        if step.get("api") in ("LIST_PARTITION_REASSIGNMENTS", "DESCRIBE_ACLS")
        if (text := (step.get("response") or {}).get("errorMessage") or "").startswith("Request ")
    }
    assert {_plain(text) for text in (*texts, not_forwarded)} == {_plain(t) for t in recorded}


def _plain(text: str) -> str:
    return re.sub(r"Session@[0-9a-f]+|\d+", "N", text)


def test_a_denial_sets_the_same_messages_as_in_kafka() -> None:
    """Some APIs set a message in the response or in each element, but only for error code 31."""
    whole = AlterPartitionReassignmentsResponse(error_code=31, error_message="x", responses=[])
    set_denial_message(45, whole, "dump")
    assert whole.error_message == "dump"
    response = CreateAclsResponse(
        results=[AclCreationResult(31, "x"), AclCreationResult(42, "bad")]
    )
    set_denial_message(30, response, "dump")
    assert [result.error_message for result in response.results] == ["dump", "bad"]
    other = UpdateFeaturesResponse(error_code=31, error_message="x", results=[])
    set_denial_message(57, other, "dump")
    assert other.error_message == "x"


def test_the_api_of_a_dumping_controller_differs_only_in_the_message_of_a_denial() -> None:
    envelope: Any = SimpleNamespace(
        request_header=b"header",
        request_data=b"body",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        principal=b"",
        client_address=b"",
    )
    sender: Any = SimpleNamespace(connection_id="here")
    part: Any = object()  # header, client and request
    plain = OpenedEnvelope(part, part, CreateAcls(has_authorizer=True), part)
    opened = with_denial_dumps(lambda *_: plain, random.Random(1))(envelope, sender)
    assert isinstance(opened, OpenedEnvelope)
    assert replace(opened, api=plain.api) == plain
    request = CreateAclsRequest(creations=[AclCreation(2, "orders", 3, "User:a", "*", 3, 3)])
    context = a_context(30, 3, rule=False)
    decision = opened.api.decide(context, request, MetadataImage(), {})
    assert decision == plain.api.decide(context, request, MetadataImage(), {})
    results = Results({d.element: d.outcome for d in decision.elements}, MetadataImage())
    (row,) = opened.api.response(context, request, results).results
    (without,) = plain.api.response(context, request, results).results
    assert row.error_message.startswith("Request Request(processor=0, connectionId=here, ")
    assert "envelope=Some(Request(" in row.error_message
    assert row.error_code == without.error_code == 31
    assert without.error_message == ErrorCode.CLUSTER_AUTHORIZATION_FAILED.default_text
