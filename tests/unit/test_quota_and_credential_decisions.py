"""What AlterClientQuotas and AlterUserScramCredentials decide, beyond what was recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from bridgehead.kafka_wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from cluster_model.client_quotas import in_hash_order
from cluster_model.entity_names import desanitize, sanitize
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scram import credential_iterations, credential_text
from controller.apis.alter_client_quotas import AlterClientQuotas, host_names
from controller.apis.alter_user_scram_credentials import AlterUserScramCredentials
from controller.apis.base import DONE, Decision, Outcome, RequestContext
from controller.host_names import HOSTS_MAX, resolvable
from controller.store.outcomes import RequestOutcomes, encode_outcomes
from envelope.messages import RequestIdentity
from tests.unit.request_contexts import a_context

QUOTAS, CREDENTIALS = AlterClientQuotas(), AlterUserScramCredentials()
FAULT_TEXT = "The server experienced an unexpected error when processing the request."
Op = tuple[str, float | None]


def context(key: int) -> RequestContext:
    return a_context(key, 0)


def stored(**users: dict[str, str]) -> MetadataImage:
    return MetadataImage().replay(
        ConfigRecord(ConfigResource("users", name), configs) for name, configs in users.items()
    )


def entry(entity: Mapping[str, str | None], *ops: Op) -> EntryData:
    return EntryData(
        [EntityData(*part) for part in entity.items()],
        [OpData(key, value or 0.0, value is None) for key, value in ops],
    )


def altered(image: MetadataImage, *entries: EntryData, dry: bool = False) -> list[Any]:
    """Return (code, text, what is written) of each entry."""
    request = AlterClientQuotasRequest(list(entries), dry)
    decision = QUOTAS.decide(context(49), request, image, {})
    return rows(decision)


def rows(decision: Decision) -> list[Any]:
    found: list[Any] = []
    for each in decision.elements:
        written = [r.configs for r in each.records if isinstance(r, ConfigRecord)]
        found.append((int(each.outcome.error), each.outcome.message, *written))
    return found


def upsertion(name: str, **other: Any) -> ScramCredentialUpsertion:
    fields: dict[str, Any] = {
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"s" * 16,
        "salted_password": b"p" * 32,
    }
    return ScramCredentialUpsertion(name=name, **{**fields, **other})


def credentials(image: MetadataImage, *changes: Any) -> dict[str, Outcome]:
    decision = CREDENTIALS.decide(context(51), changing(*changes), image, {})
    return {each.element: each.outcome for each in decision.elements}


def changing(*changes: Any) -> AlterUserScramCredentialsRequest:
    deletions = [each for each in changes if isinstance(each, ScramCredentialDeletion)]
    return AlterUserScramCredentialsRequest(
        deletions, [each for each in changes if each not in deletions]
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("consumer_byte_rate", 1048576.0, "1048576"),
        ("consumer_byte_rate", 7.0000001, "7"),
        ("consumer_byte_rate", 6.9999999, "7"),
        ("consumer_byte_rate", 2.0**63, "9223372036854775807"),
        ("consumer_byte_rate", float("nan"), "0"),
        ("request_percentage", 200.0, "200.0"),
        ("request_percentage", 12345678.0, "1.2345678E7"),
        ("controller_mutation_rate", -1.5, "-1.5"),
    ],
)
def test_a_value_is_stored_as_java_writes_it(key: str, value: float, text: str) -> None:
    """Whole numbers without a fraction, doubles in Java's own form."""
    ((code, _, written),) = altered(MetadataImage(), entry({"user": "u"}, (key, value)))
    assert (code, written) == (0, {key: text})


@pytest.mark.parametrize("value", [-1.0, 0.5, 1e300, float("inf"), float("-inf")])
def test_what_is_no_whole_number_is_refused(value: float) -> None:
    """A negative one, too, by the way Kafka rounds."""
    ((code, text),) = altered(MetadataImage(), entry({"user": "u"}, ("consumer_byte_rate", value)))
    assert (code, text) == (42, "Configuration consumer_byte_rate must be a LONG value")


def test_operations_of_an_entry_apply_in_their_order() -> None:
    """The last word on a key counts, be it a value or a removal."""
    image = stored(u={"request_percentage": "5.0"})
    key = "consumer_byte_rate"
    result = altered(
        image,
        entry({"user": "u"}, (key, 1.0), (key, None)),
        entry({"user": "u"}, (key, None), (key, 2.0)),
    )
    assert result == [
        (0, None, {"request_percentage": "5.0"}),
        (0, None, {"request_percentage": "5.0", key: "2"}),
    ]


def test_an_entry_sees_what_the_entries_before_it_made() -> None:
    """But nothing of a dry run, nor of an entry that was refused."""
    first, bad = ("consumer_byte_rate", 1.0), ("nonsense", 1.0)
    second = ("producer_byte_rate", 2.0)
    ours = {"user": "u"}
    entries = [entry(ours, first), entry(ours, second, bad), entry(ours, second)]
    assert altered(MetadataImage(), *entries) == [
        (0, None, {"consumer_byte_rate": "1"}),
        (42, "Invalid configuration key nonsense"),
        (0, None, {"consumer_byte_rate": "1", "producer_byte_rate": "2"}),
    ]
    assert [row[:1] for row in altered(MetadataImage(), *entries, dry=True)] == [(0,), (42,), (0,)]


def test_an_entity_that_comes_twice_is_answered_once_by_its_last_entry() -> None:
    """Whatever the order in which its parts are named."""
    good, bad = ("consumer_byte_rate", 1.0), ("nonsense", 1.0)
    entries = [
        entry({"user": "u", "client-id": "c"}, good),
        entry({"client-id": "c", "user": "u"}, bad),
        entry({"user": "u"}, good),
    ]
    request = AlterClientQuotasRequest(entries, False)
    decision = QUOTAS.decide(context(49), request, MetadataImage(), {})
    outcomes = {each.element: each.outcome for each in decision.elements}
    answer = QUOTAS.answer(context(49), request, outcomes, MetadataImage(), frozenset())
    assert [(e.error_code, [p.entity_type for p in e.entity]) for e in answer.entries] == [
        (42, ["client-id", "user"]),
        (0, ["user"]),
    ]


def test_a_request_that_comes_again_does_only_what_is_not_settled() -> None:
    """The settled entry is not decided, though another one is of the same entity."""
    key = "consumer_byte_rate"
    request = AlterClientQuotasRequest(
        [entry({"user": "u"}, (key, 1.0)), entry({"user": "u"}, (key, 2.0))], False
    )
    every = [e.element for e in QUOTAS.decide(context(49), request, stored(), {}).elements]
    again = QUOTAS.decide(context(49), request, stored(u={key: "1"}), {every[0]: DONE})
    assert [each.element for each in again.elements] == every[1:]

    gone = changing(ScramCredentialDeletion("a", 1), upsertion("b"))
    later = CREDENTIALS.decide(context(51), gone, stored(), {"a": DONE})
    assert [each.element for each in later.elements] == ["b"]


def test_quotas_and_credentials_of_a_user_leave_each_other_alone() -> None:
    """They live in one znode."""
    secret = credential_text(1, b"s", b"p", 4096)
    image = stored(u={"SCRAM-SHA-256": secret})
    ((_, _, written),) = altered(image, entry({"user": "u"}, ("consumer_byte_rate", 1.0)))
    assert written == {"SCRAM-SHA-256": secret, "consumer_byte_rate": "1"}
    request = changing(ScramCredentialDeletion("u", 1))
    ((_, _, written),) = rows(CREDENTIALS.decide(context(51), request, stored(u=written), {}))
    assert written == {"consumer_byte_rate": "1"}


def test_a_credential_cannot_be_set_as_a_quota() -> None:
    """Kafka says UNKNOWN_SERVER_ERROR: the key is known and its type is not."""
    assert altered(MetadataImage(), entry({"user": "u"}, ("SCRAM-SHA-256", 1.0))) == [(-1, None)]


def test_somebody_elses_unknown_key_can_only_be_removed() -> None:
    """Whoever would write it again is refused."""
    image = stored(u={"alien": "1"})
    assert altered(image, entry({"user": "u"}, ("consumer_byte_rate", 1.0))) == [(-1, None)]
    assert altered(image, entry({"user": "u"}, ("alien", None))) == [(0, None, {})]
    assert credentials(image, upsertion("u"))["u"].error == -1


@pytest.mark.parametrize(
    ("ip", "good"),
    [("10.0.0.1", True), ("1", True), ("10.1", True), ("10.0.0.256", False), ("::1", False)],
)
def test_an_ip_is_one_as_java_reads_it(ip: str, good: bool) -> None:
    """The last part fills what is left; version 6 is refused as Kafka does, sanitised before."""
    ((code, text, *_),) = altered(MetadataImage(), entry({"ip": ip}, ("x", None)))
    assert code == (0 if good else 42)
    assert text == (None if good else f"{sanitize(ip)} is not a valid IP or resolvable host.")


def test_a_host_that_has_an_address_may_stand_for_an_ip() -> None:
    """As it was written; whether it has one was looked up before the decision."""
    request = AlterClientQuotasRequest(
        entries=[
            entry({"ip": name}, ("connection_creation_rate", 5.0))
            for name in ("Localhost", "no-such-host.invalid", "10.0.0.1", "::1")
        ]
    )
    assert host_names(request) == ["Localhost", "no-such-host.invalid", "%3A%3A1"]
    asks = replace(context(49), resolvable=frozenset({"Localhost"}))
    decision = QUOTAS.decide(asks, request, MetadataImage(), {})
    assert [d.outcome.error for d in decision.elements] == [0, 42, 0, 42]
    (record,) = decision.elements[0].records
    assert isinstance(record, ConfigRecord)
    assert record.resource == ConfigResource("ips", "Localhost")


async def test_names_are_looked_up_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what can be a name, fifty at most, and not for ever."""
    asked: list[str] = []

    async def look_up(name: str) -> bool:
        asked.append(name)
        if name == "slow":
            await asyncio.get_running_loop().create_future()
        return name != "unknown"

    monkeypatch.setattr("controller.host_names._has_address", look_up)
    monkeypatch.setattr("controller.host_names.WITHIN_S", 0.01)
    found = await resolvable(["good", "unknown", "%3A%3A1", "a b", "good", "slow", "late"])
    assert found == {"good"}
    assert asked == ["good", "unknown", "slow"]
    asked.clear()
    await resolvable([f"host-{number}" for number in range(60)])
    assert len(asked) == HOSTS_MAX


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_znode_can_have_is_refused(name: str) -> None:
    """A multi that ZooKeeper finds malformed would end the controller's term."""
    quota = ("consumer_byte_rate", 1.0)
    for entity in ({"user": name}, {"client-id": name}, {"user": "u", "client-id": name}):
        assert altered(MetadataImage(), entry(dict(entity), quota)) == [(-1, None)]
    outcomes = credentials(MetadataImage(), upsertion(name), upsertion("good"))
    assert {outcome.error for outcome in outcomes.values()} == {-1}
    outcomes = credentials(MetadataImage(), ScramCredentialDeletion(name, 1), upsertion(""))
    assert {outcome.error for outcome in outcomes.values()} == {-1}


def test_a_salted_password_that_cannot_be_used_fails_every_user() -> None:
    """As in Kafka, whose loop meets it for each of them; who was refused before stays so."""
    outcomes = credentials(
        MetadataImage(), upsertion("a", salted_password=b""), upsertion("b"), upsertion("")
    )
    assert outcomes["a"] == outcomes["b"] == Outcome(outcomes["a"].error, FAULT_TEXT)
    assert outcomes[""].error == 93


def test_no_secret_is_in_an_outcome_or_an_answer() -> None:
    """Salted password and keys are in the records alone, the password in nothing."""
    request = changing(upsertion("a"), upsertion("b", iterations=1))
    decision = CREDENTIALS.decide(context(51), request, MetadataImage(), {})
    outcomes = {each.element: each.outcome for each in decision.elements}
    answer = CREDENTIALS.answer(context(51), request, outcomes, MetadataImage(), frozenset())
    identity = RequestIdentity(1, "i", 1)
    kept = encode_outcomes(1, [RequestOutcomes(identity, "r", outcomes)]).decode()
    (record,) = [r for each in decision.elements for r in each.records]
    assert isinstance(record, ConfigRecord)
    fields = dict(f.split("=", 1) for f in record.configs["SCRAM-SHA-256"].split(","))
    for shown in (kept, repr(answer)):
        assert not any(fields[name] in shown for name in ("salt", "stored_key", "server_key"))
    assert "pppp" not in kept + repr(answer) + repr(decision)


def test_a_stored_credential_that_is_none_is_not_shown() -> None:
    """The error's text names no part of it."""
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
def test_a_name_is_stored_as_kafka_sanitises_it(name: str | None, as_stored: str) -> None:
    """And read back."""
    assert sanitize(name) == as_stored
    assert desanitize(as_stored) == name


def test_an_entitys_parts_come_in_the_order_of_javas_hash_map() -> None:
    """As recorded for two parts."""
    assert in_hash_order({"user": "u", "client-id": "c"}, 2) == [("client-id", "c"), ("user", "u")]
    assert in_hash_order({"ip": "i", "user": "u"}, 2) == [("user", "u"), ("ip", "i")]
