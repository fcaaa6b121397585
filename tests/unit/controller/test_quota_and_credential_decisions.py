"""Quotas and SCRAM credentials: cases that no recording covers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridgehead.kafka_wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
)
from bridgehead.kafka_wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from cluster_model.client_quotas import in_hash_order
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scram import credential_iterations, credential_text
from cluster_model.znodes.entity_names import desanitize, sanitize
from controller.apis.alter_client_quotas import host_names
from controller.apis.alter_user_scram_credentials import AlterUserScramCredentials
from controller.apis.base import DONE, Outcome, Results
from controller.requests.host_names import HOSTS_MAX, resolvable
from controller.store.outcomes import RequestOutcomes, encode_outcomes
from envelope.messages import RequestIdentity
from tests.unit.comparisons import CountedName
from tests.unit.controller.request_contexts import a_context
from tests.unit.controller.transcripts import check

CREDENTIALS, CONTEXT = AlterUserScramCredentials(), a_context(51, 0)
FAULT_TEXT = "The server experienced an unexpected error when processing the request."


def upsertion(name: str, **other: Any) -> ScramCredentialUpsertion:
    fields: dict[str, Any] = {
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"s" * 16,
        "salted_password": b"p" * 32,
    }
    return ScramCredentialUpsertion(name=name, **{**fields, **other})


def changing(*changes: Any) -> AlterUserScramCredentialsRequest:
    deletions = [change for change in changes if isinstance(change, ScramCredentialDeletion)]
    return AlterUserScramCredentialsRequest(
        deletions, [change for change in changes if change not in deletions]
    )


def credentials(*changes: Any, **stored: str) -> dict[str, Outcome]:
    """Return the outcomes by user. The znode of user `u` has the `stored` configs."""
    image = MetadataImage().replay([ConfigRecord(ConfigResource("users", "u"), stored)])
    decision = CREDENTIALS.decide(CONTEXT, changing(*changes), image, {})
    return {element.element: element.outcome for element in decision.elements}


def test_quotas_are_stored_as_java_writes_numbers() -> None:
    check("""
    > quota user:u consumer_byte_rate=1048576.0
    0:user=u: NONE
      configs users/u consumer_byte_rate=1048576
    > quota user:u consumer_byte_rate=7.0000001
    0:user=u: NONE
      configs users/u consumer_byte_rate=7
    > quota user:u consumer_byte_rate=6.9999999
    0:user=u: NONE
      configs users/u consumer_byte_rate=7
    > quota user:u consumer_byte_rate=9223372036854775808.0
    0:user=u: NONE
      configs users/u consumer_byte_rate=9223372036854775807
    > quota user:u consumer_byte_rate=nan
    0:user=u: NONE
      configs users/u consumer_byte_rate=0
    > quota user:u consumer_byte_rate= request_percentage=200.0
    0:user=u: NONE
      configs users/u request_percentage=200.0
    > quota user:u request_percentage=12345678.0
    0:user=u: NONE
      configs users/u request_percentage=1.2345678E7
    > quota user:u request_percentage= controller_mutation_rate=-1.5
    0:user=u: NONE
      configs users/u controller_mutation_rate=-1.5
    """)


@pytest.mark.parametrize("value", [-1.0, 0.5, 1e300, float("inf"), float("-inf")])
def test_byte_rates_reject_fractions_and_negative_and_infinite_values(value: float) -> None:
    """Kafka adds 0.000001, truncates, and rejects a value that changes by more: -1 becomes 0."""
    check(f"""
    > quota user:u consumer_byte_rate={value}
    0:user=u: INVALID_REQUEST "Configuration consumer_byte_rate must be a LONG value"
    """)


def test_operations_of_a_quota_entry_apply_in_order() -> None:
    check("""
    > stored users/u request_percentage=5.0
    > quota user:u consumer_byte_rate=1 consumer_byte_rate= / user:u consumer_byte_rate= consumer_byte_rate=2
    0:user=u: NONE
      configs users/u request_percentage=5.0
    1:user=u: NONE
      configs users/u request_percentage=5.0 consumer_byte_rate=2
    """)


def test_a_quota_entry_sees_earlier_entries_but_not_rejected_ones() -> None:
    check("""
    > quota user:u consumer_byte_rate=1 / user:u producer_byte_rate=2 nonsense=1 / user:u producer_byte_rate=2
    0:user=u: NONE
      configs users/u consumer_byte_rate=1
    1:user=u: INVALID_REQUEST "Invalid configuration key nonsense"
    2:user=u: NONE
      configs users/u consumer_byte_rate=1 producer_byte_rate=2
    > quota user:v consumer_byte_rate=1 / user:v nonsense=1 dry
    0:user=v: NONE
    1:user=v: INVALID_REQUEST "Invalid configuration key nonsense"
    """)


def test_a_duplicate_quota_entity_gets_the_result_of_its_last_entry() -> None:
    check("""
    > quota user:u,client-id:c consumer_byte_rate=1 / client-id:c,user:u nonsense=1 / user:u consumer_byte_rate=1 dry response
    0:client-id=c,user=u: NONE
    1:client-id=c,user=u: INVALID_REQUEST "Invalid configuration key nonsense"
    2:user=u: NONE
    < {"errorCode": 42, "errorMessage": "Invalid configuration key nonsense", "entity": [{"entityType": "client-id", "entityName": "c"}, {"entityType": "user", "entityName": "u"}]}
    < {"errorCode": 0, "errorMessage": null, "entity": [{"entityType": "user", "entityName": "u"}]}
    """)


def test_resend_changes_only_uncommitted_entries() -> None:
    check("""
    > stored users/u consumer_byte_rate=1
    > quota user:u consumer_byte_rate=1 / user:u consumer_byte_rate=2 committed=0:user=u
    1:user=u: NONE
      configs users/u consumer_byte_rate=2
    """)
    again = changing(ScramCredentialDeletion("a", 1), upsertion("b"))
    decided = CREDENTIALS.decide(CONTEXT, again, MetadataImage(), {"a": DONE}).elements
    assert [element.element for element in decided] == ["b"]


def test_quotas_and_credentials_share_a_znode() -> None:
    cluster = check("""
    > stored users/u SCRAM-SHA-256=secret
    > quota user:u consumer_byte_rate=1
    0:user=u: NONE
      configs users/u SCRAM-SHA-256=secret consumer_byte_rate=1
    """)
    deletion = changing(ScramCredentialDeletion("u", 1))
    (decided,) = CREDENTIALS.decide(CONTEXT, deletion, cluster.image, {}).elements
    (record,) = decided.records
    assert isinstance(record, ConfigRecord)
    assert record.configs == {"consumer_byte_rate": "1"}


def test_unknown_keys_can_only_be_removed() -> None:
    """An unknown key is a credential sent as a quota, or a key written to ZooKeeper by hand."""
    check("""
    > quota user:u SCRAM-SHA-256=1
    0:user=u: UNKNOWN_SERVER_ERROR
    > stored users/u alien=1
    > quota user:u consumer_byte_rate=1
    0:user=u: UNKNOWN_SERVER_ERROR
    > quota user:u alien=
    0:user=u: NONE
      configs users/u
    """)
    assert credentials(upsertion("u"), alien="1")["u"].error == -1


def test_ip_quotas_take_addresses_and_resolvable_hosts() -> None:
    """IPv4 addresses are parsed as in Java; IPv6 is rejected. Host names are stored as given."""
    check("""
    > quota ip:10.0.0.1 x= / ip:1 x= / ip:10.1 x= / ip:10.0.0.256 x= / ip:::1 x= dry
    0:ip=10.0.0.1: NONE
    1:ip=1: NONE
    2:ip=10.1: NONE
    3:ip=10.0.0.256: INVALID_REQUEST "10.0.0.256 is not a valid IP or resolvable host."
    4:ip=::1: INVALID_REQUEST "%3A%3A1 is not a valid IP or resolvable host."
    > quota ip:Localhost connection_creation_rate=5 / ip:no-such-host.invalid x= resolvable=Localhost
    0:ip=Localhost: NONE
      configs ips/Localhost connection_creation_rate=5
    1:ip=no-such-host.invalid: INVALID_REQUEST "no-such-host.invalid is not a valid IP or resolvable host."
    """)


def test_ip_entities_that_are_not_addresses_are_host_names() -> None:
    entries = [EntryData([EntityData("ip", ip)], []) for ip in ("Localhost", "10.0.0.1", "::1")]
    assert host_names(AlterClientQuotasRequest(entries)) == ["Localhost", "%3A%3A1"]


async def test_host_lookups_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only host names are looked up, at most fifty of them, and within a timeout."""
    resolved: list[str] = []

    async def look_up(name: str) -> bool:
        resolved.append(name)
        if name == "slow":
            await asyncio.get_running_loop().create_future()
        return name != "unknown"

    monkeypatch.setattr("controller.requests.host_names._has_address", look_up)
    monkeypatch.setattr("controller.requests.host_names.WITHIN_S", 0.01)
    hosts = await resolvable(["good", "unknown", "%3A%3A1", "a b", "good", "slow", "late"])
    assert hosts == {"good"}
    assert resolved == ["good", "unknown", "slow"]
    resolved.clear()
    await resolvable([f"host-{number}" for number in range(60)])
    assert len(resolved) == HOSTS_MAX


@pytest.mark.parametrize("name", ["a..b", "a" * 64])
async def test_a_name_that_is_no_host_name_does_not_resolve(name: str) -> None:
    """A label of the name is empty or too long, so that Python's lookup raises UnicodeError."""
    assert await resolvable([name]) == frozenset()


def test_invalid_znode_names_are_rejected() -> None:
    """Kafka's ZooKeeper client also rejects the names `.` and `..`."""
    check("""
    > quota user:. consumer_byte_rate=1 / client-id:.. consumer_byte_rate=1 / user:u,client-id:. consumer_byte_rate=1
    0:user=.: UNKNOWN_SERVER_ERROR
    1:client-id=..: UNKNOWN_SERVER_ERROR
    2:client-id=.,user=u: UNKNOWN_SERVER_ERROR
    """)
    for changes in (
        (upsertion("."), upsertion("good")),
        (ScramCredentialDeletion("..", 1), upsertion("")),
    ):
        assert {outcome.error for outcome in credentials(*changes).values()} == {-1}


def test_an_empty_salted_password_fails_every_user() -> None:
    """Kafka does the same. A user that was already rejected keeps its error."""
    outcomes = credentials(upsertion("a", salted_password=b""), upsertion("b"), upsertion(""))
    assert outcomes["a"] == outcomes["b"] == Outcome(outcomes["a"].error, FAULT_TEXT)
    assert outcomes[""].error == 93


def test_secrets_are_in_records_only() -> None:
    """The outcomes and the response contain no secret."""
    request = changing(upsertion("a"), upsertion("b", iterations=1))
    decision = CREDENTIALS.decide(CONTEXT, request, MetadataImage(), {})
    outcomes = {element.element: element.outcome for element in decision.elements}
    response = CREDENTIALS.response(CONTEXT, request, Results(outcomes, MetadataImage()))
    identity = RequestIdentity(1, "i", 1)
    kept = encode_outcomes(1, [RequestOutcomes(identity, "r", outcomes)]).decode()
    (record,) = [r for element in decision.elements for r in element.records]
    assert isinstance(record, ConfigRecord)
    fields = dict(f.split("=", 1) for f in record.configs["SCRAM-SHA-256"].split(","))
    for shown in (kept, repr(response)):
        assert not any(fields[name] in shown for name in ("salt", "stored_key", "server_key"))
    assert "pppp" not in kept + repr(response) + repr(decision)


def test_an_invalid_stored_credential_is_not_shown_in_the_error() -> None:
    text = credential_text(2, b"", b"p", 8192)
    assert credential_iterations(text) == 8192
    for broken in ("", "secret", text + ",x=secret", text.replace("=8192", "=secret")):
        with pytest.raises(ValueError, match="a stored credential") as wrong:
            credential_iterations(broken)
        assert "secret" not in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "as_stored"),
    [
        ("CN=a,O=b c", "CN%3Da%2CO%3Db%20c"),
        ("a*+~", "a%2A%2B%7E"),
        ("a/b", "a%2Fb"),
        ("<default>", "%3Cdefault%3E"),
        (None, "<default>"),
        ("Ünï.-_", "%C3%9Cn%C3%AF.-_"),
    ],
)
def test_names_are_sanitized_as_in_kafka(name: str | None, as_stored: str) -> None:
    assert sanitize(name) == as_stored
    assert desanitize(as_stored) == name


def test_parts_of_an_entity_are_in_the_order_of_javas_hash_map() -> None:
    assert in_hash_order({"user": "u", "client-id": "c"}, 2) == [("client-id", "c"), ("user", "u")]
    assert in_hash_order({"ip": "i", "user": "u"}, 2) == [("user", "u"), ("ip", "i")]


def test_the_time_to_change_credentials_grows_linearly() -> None:
    """With quadratic time, a request of a few MB would block the controller for minutes."""
    request = changing(*(upsertion(CountedName(f"u{number}")) for number in range(300)))
    before = CountedName.comparisons
    decision = CREDENTIALS.decide(CONTEXT, request, MetadataImage(), {})
    assert [element.outcome for element in decision.elements] == [DONE] * 300
    assert CountedName.comparisons - before < 3000
