"""kafka-request.log: Kafka's keys, order and levels, without secrets.

The tests use the times, ids and ports of a line that a live Kafka 3.9.1 wrote.
"""

from __future__ import annotations

import base64
import errno
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from bridgehead.kafka_wire.apis import SPECS
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_user_scram_credentials,
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    find_coordinator,
    incremental_alter_configs,
    renew_delegation_token,
    sasl_authenticate,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.schema import BYTES, Array, fields_of
from broker_proxy.requests.routing import ROUTING_TABLES
from cluster_model.request_lines import (
    _SECRETS,
    CompletedRequest,
    Times,
    is_deprecated,
    request_line,
)
from event_log.text_log import FILES_MAX, Level, TextLog

SECRET = b"the secret of these tests"
REQUEST_LOG_OF_KAFKA = (
    b'Completed request:{"isForwarded":true,"requestHeader":{"requestApiKey":19,'
    b'"requestApiVersion":7,"correlationId":2,"clientId":"q1",'
    b'"requestApiKeyName":"CREATE_TOPICS"},"request":{"topics":[{"name":"s2b","numPartitions":1,'
    b'"replicationFactor":1,"assignments":[],"configs":[]}],"timeoutMs":10000,'
    b'"validateOnly":false},"response":{"throttleTimeMs":8649,"topics":[{"name":"s2b",'
    b'"topicId":"AAAAAAAAAAAAAAAAAAAAAA","errorCode":89,"errorMessage":null,"numPartitions":-1,'
    b'"replicationFactor":-1,"configs":[]}]},"connection":"127.0.0.1:41585-127.0.0.1:52656-7",'
    b'"totalTimeMs":15.769,"requestQueueTimeMs":0.147,"localTimeMs":15.148,"remoteTimeMs":0.253,'
    b'"throttleTimeMs":0,"responseQueueTimeMs":0.076,"sendTimeMs":0.145,'
    b'"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT",'
    b'"clientInformation":{"softwareName":"unknown","softwareVersion":"unknown"}}'
)


def creation(version: int = 7) -> CompletedRequest:
    return CompletedRequest(
        is_forwarded=True,
        header=RequestHeader(19, version, 2, "q1"),
        request=CreateTopicsRequest(
            topics=[CreatableTopic("s2b", 1, 1, [], [])], timeout_ms=10_000, validate_only=False
        ),
        response=CreateTopicsResponse(
            throttle_time_ms=8649,
            topics=[
                CreatableTopicResult(name="s2b", error_code=89, error_message=None, configs=[])
            ],
        ),
        connection_id="127.0.0.1:41585-127.0.0.1:52656-7",
        times=Times(147_999, 15_148_000, 253_000, 76_000, 145_000),
        security_protocol="PLAINTEXT",
        principal="User:ANONYMOUS",
        listener_name="PLAINTEXT",
    )


def logged(key: int, version: int, request: Any, response: Any = None) -> dict[str, Any]:
    """Return the values in the log line of one request."""
    done = CompletedRequest(
        is_forwarded=False,
        header=RequestHeader(key, version, 1, None),
        request=request,
        response=response,
        connection_id="c",
        times=Times(),
        security_protocol="PLAINTEXT",
        principal="User:ANONYMOUS",
        listener_name="PLAINTEXT",
    )
    values: dict[str, Any] = orjson.loads(request_line(done).partition(b":")[2])
    return values


def test_a_line_equals_the_line_that_kafka_wrote() -> None:
    """A Kafka controller wrote the line for a forwarded CreateTopics above the mutation quota."""
    assert request_line(creation()) == REQUEST_LOG_OF_KAFKA


def test_the_line_is_the_same_for_a_relayed_response() -> None:
    message = creation()
    relayed = replace(message, response=encode_response(19, 7, message.response))
    assert request_line(relayed) == request_line(message)


def test_a_closed_connection_has_an_empty_response() -> None:
    line = logged(19, 7, None)
    assert (line["request"], line["response"]) == ("", "")
    assert line["requestHeader"]["clientId"] is None


def test_deprecated_versions_are_logged_at_info() -> None:
    """KIP-896."""
    assert [is_deprecated(RequestHeader(19, v, 1, "c")) for v in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    header = logged(19, 1, None)["requestHeader"]
    assert list(header)[-1] == "requestApiVersionDeprecated"
    assert header["requestApiVersionDeprecated"] is True


def test_doubles_are_written_as_java_writes_them() -> None:
    operations = [
        alter_client_quotas.OpData("k", value, False) for value in (1e20, 0.5, float("nan"))
    ]
    request = alter_client_quotas.AlterClientQuotasRequest(
        entries=[alter_client_quotas.EntryData([], operations)]
    )
    done = CompletedRequest(
        False, RequestHeader(49, 1, 1, None), request, None, "c", Times(), "P", "U", "L"
    )
    line = request_line(done)
    assert b'"value":1.0E20' in line
    assert b'"value":0.5,' in line
    assert b'"value":"NaN"' in line


SECRETS: list[tuple[int, Any, Any]] = [
    (
        51,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            upsertions=[
                alter_user_scram_credentials.ScramCredentialUpsertion(
                    "alice", 1, 4096, SECRET, SECRET
                )
            ]
        ),
        None,
    ),
    (38, None, create_delegation_token.CreateDelegationTokenResponse(hmac=SECRET)),
    (39, renew_delegation_token.RenewDelegationTokenRequest(hmac=SECRET), None),
    (40, expire_delegation_token.ExpireDelegationTokenRequest(hmac=SECRET), None),
    (
        41,
        None,
        describe_delegation_token.DescribeDelegationTokenResponse(
            tokens=[describe_delegation_token.DescribedDelegationToken(hmac=SECRET)]
        ),
    ),
    (
        36,
        sasl_authenticate.SaslAuthenticateRequest(auth_bytes=SECRET),
        sasl_authenticate.SaslAuthenticateResponse(auth_bytes=SECRET),
    ),
]


@pytest.mark.parametrize(("key", "request_", "response"), SECRETS)
def test_credentials_tokens_and_logins_are_hidden(key: int, request_: Any, response: Any) -> None:
    """Kafka's request log hides none of them."""
    text = str(logged(key, 0, request_, response))
    assert base64.b64encode(SECRET).decode() not in text
    assert "[hidden]" in text


@pytest.mark.parametrize("api", [alter_configs, incremental_alter_configs])
@pytest.mark.parametrize(
    ("resource_type", "name", "hidden"),
    [
        (4, "ssl.keystore.password", True),
        (4, "listener.name.x.ssl.key.password", True),
        (4, "no.such.config", True),
        (4, "log.cleaner.threads", False),
        (2, "retention.ms", False),
        (2, "no.such.config", True),
        (8, "kafka.controller", False),
        (77, "retention.ms", True),
    ],
)
def test_sensitive_config_values_are_hidden(
    api: Any, resource_type: int, name: str, hidden: bool
) -> None:
    """Values of unknown configs are hidden too: a sensitive config may be misspelled."""
    config = api.AlterableConfig(name=name, value="v")
    resource = api.AlterConfigsResource(resource_type, "r", [config])
    request = (
        api.AlterConfigsRequest([resource])
        if api is alter_configs
        else api.IncrementalAlterConfigsRequest([resource])
    )
    (resource,) = logged(33 if api is alter_configs else 44, 0, request)["request"]["resources"]
    assert resource["configs"][0]["value"] == ("[hidden]" if hidden else "v")
    assert config.value == "v"


def test_lines_have_the_layout_and_levels_of_log4j(tmp_path: Path) -> None:
    log = TextLog(tmp_path / "logs" / "x.log", "kafka.request.logger", Level.INFO)
    log.append(Level.DEBUG, b"unseen", 0)
    log.append(Level.INFO, b"seen", 1_700_000_000_007)
    log.close()
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1_700_000_000))
    written = (tmp_path / "logs" / "x.log").read_text()
    assert written == f"[{when},007] INFO seen (kafka.request.logger)\n"


def test_a_log_asks_for_a_flush_when_its_buffer_stops_being_empty(tmp_path: Path) -> None:
    log = TextLog(tmp_path / "x.log", "kafka.request.logger", Level.INFO)
    asked = []
    log.on_buffered = lambda: asked.append("flush")
    log.append(Level.DEBUG, b"unseen", 0)
    assert asked == []
    for _ in range(2):
        log.append(Level.INFO, b"seen", 0)
    log.flush()
    log.append(Level.INFO, b"seen", 0)
    assert asked == ["flush", "flush"]
    log.close()


def test_a_disabled_log_creates_no_file(tmp_path: Path) -> None:
    log = TextLog(tmp_path / "logs" / "x.log", "kafka.request.logger", Level.OFF)
    log.append(Level.INFO, b"unseen", 0)
    log.close()
    assert not (tmp_path / "logs").exists()


def test_a_large_log_is_rolled_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("event_log.text_log.FILE_BYTES_MAX", 100)
    log = TextLog(tmp_path / "x.log", "l", Level.DEBUG)
    for number in range(9):
        log.append(Level.INFO, b"%d" % number * 100, 0)
        log.flush()
    log.close()
    assert {file.name for file in tmp_path.iterdir()} == {
        "x.log",
        *(f"x.log.{n}" for n in range(1, FILES_MAX + 1)),
    }
    assert b"8" * 100 in (tmp_path / "x.log.1").read_bytes()
    assert b"4" * 100 in (tmp_path / "x.log.5").read_bytes()


def test_a_log_that_cannot_be_rolled_over_writes_to_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is rolled over as soon as a file can be opened again."""
    monkeypatch.setattr("event_log.text_log.FILE_BYTES_MAX", 100)
    log = TextLog(tmp_path / "x.log", "l", Level.DEBUG)
    log.append(Level.INFO, b"1" * 100, 0)
    with monkeypatch.context() as patch:
        patch.setattr("event_log.text_log.os.open", raise_full)
        log.flush()
    other = tmp_path / "other"
    with other.open("wb"):  # may get the descriptor of a file that was closed
        with monkeypatch.context() as patch:
            patch.setattr("event_log.text_log.os.open", raise_full)
            log.append(Level.INFO, b"2" * 100, 0)
            log.flush()
        log.append(Level.INFO, b"3" * 100, 0)
        log.flush()
    log.close()
    assert other.read_bytes() == b""
    assert all(b"%d" % n * 100 in (tmp_path / "x.log.1").read_bytes() for n in (1, 2, 3))
    assert (tmp_path / "x.log").read_bytes() == b""


def raise_full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


HARMLESS = {
    "client_host_address",
    "principal_info",
    "request_principal",
    "request_header",
    "response_header",
    "assignment",
    "member_assignment",
    "member_metadata",
    "metadata",
}


def test_every_field_of_type_bytes_is_hidden_or_listed_as_harmless() -> None:
    """Credentials and tokens are bytes in Kafka's protocol; a new secret would be bytes, too."""
    field_names: dict[str, set[str]] = {"hidden": set(), "shown": set()}
    for dialect, routes in ROUTING_TABLES.items():
        for key in routes:
            spec = SPECS[dialect][key]
            for message in (spec.request, spec.response):
                for struct, name in _fields_of_bytes(message):
                    hidden = any(name in _SECRETS.get(base, ()) for base in struct.__mro__)
                    field_names["hidden" if hidden else "shown"].add(name)
    assert {"auth_bytes", "hmac", "salt", "salted_password"} <= field_names["hidden"]
    assert field_names["shown"] <= HARMLESS


def test_drafted_messages_hide_the_same_secrets() -> None:
    response = SPECS["drafted"][38].response(hmac=SECRET)
    assert type(response) is not create_delegation_token.CreateDelegationTokenResponse
    assert logged(38, 0, None, response)["response"]["hmac"] == "[hidden]"


def _fields_of_bytes(struct: type[Any]) -> Iterator[tuple[type[Any], str]]:
    for field in fields_of(struct):
        kind = field.type.of if isinstance(field.type, Array) else field.type
        if isinstance(kind, type):
            yield from _fields_of_bytes(kind)
        elif kind is BYTES:
            yield struct, field.name


def _line_of(request: Any, response: Any, key: int = 10, version: int = 4) -> bytes:
    done = CompletedRequest(
        is_forwarded=False,
        header=RequestHeader(key, version, 2, "q1"),
        request=request,
        response=response,
        connection_id="c",
        times=Times(),
        security_protocol="PLAINTEXT",
        principal="User:bob",
        listener_name="PLAINTEXT",
    )
    return request_line(done)


def _coordinators(names: list[str]) -> tuple[Any, Any]:
    return (
        find_coordinator.FindCoordinatorRequest(coordinator_keys=names),
        find_coordinator.FindCoordinatorResponse(
            coordinators=[find_coordinator.Coordinator(key=name) for name in names]
        ),
    )


def test_a_large_request_is_logged_as_its_number_of_elements() -> None:
    """Otherwise two requests of a user without rights fill all files of the log."""
    line = _line_of(*_coordinators([f"n{number}" for number in range(70_001)]))
    logged = orjson.loads(line.partition(b":")[2])
    assert logged["request"] == {"elements": {"coordinatorKeys": 70_001}}
    assert logged["response"] == {"elements": {"coordinators": 70_001}}
    assert len(line) < 1_000


def test_a_request_with_long_names_is_logged_as_its_number_of_elements() -> None:
    line = _line_of(*_coordinators(["n" * 32_000] * 7))
    assert orjson.loads(line.partition(b":")[2])["request"] == {"elements": {"coordinatorKeys": 7}}
    few = _line_of(*_coordinators(["n" * 200] * 7))
    assert orjson.loads(few.partition(b":")[2])["request"]["coordinatorKeys"] == ["n" * 200] * 7


def test_a_large_relayed_response_is_logged_as_its_size() -> None:
    request, response = _coordinators([f"n{number}" for number in range(30_000)])
    body = encode_response(10, 4, response)
    logged = orjson.loads(_line_of(request, body).partition(b":")[2])
    assert logged["response"] == {"bytes": len(body)}
