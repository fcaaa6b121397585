"""The controller accepts Envelopes only from brokers, and only with the sender's own identity.

The tests send Envelopes to real nodes with an authorizer. Rejected Envelopes are counted. They have
no effect, and the nodes keep running.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics, decode_message
from cluster_model.principal import KafkaPrincipal
from envelope.channel import ControllerChannel
from envelope.channel_security import ChannelFiles, broker_host, load_security
from envelope.messages import ChannelClosedError, Envelope, Hello, RequestIdentity
from envelope.principal_serde import DefaultPrincipalSerde
from tests.integration.admin_clients import ConfluentAdmin

BROKERS = (1, 2, 3)
CONTROLLER = 1
ADMIN = DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "admin"))
HEADER_BYTES = 15  # of the frame below: key, version, correlation id, client id "bench"
FRAME = create_topics(["stolen"])
TIMEOUT_S = 60


@dataclass(frozen=True)
class SecuredCluster:
    """A running cluster and the certificate authority of its brokers."""

    cluster: Cluster
    ca: trustme.CA
    folder: Path

    def files(self, user: str, broker_id: int, ca: trustme.CA | None = None) -> ChannelFiles:
        """Write a key and its certificate, issued by the brokers' authority or by `ca`."""
        name = f"{user}-{broker_id}{'' if ca is None else '-foreign'}"
        leaf = (ca or self.ca).issue_cert(broker_host(broker_id), common_name=user)
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        self.ca.cert_pem.write_to_path(self.folder / "ca.pem")
        return ChannelFiles(str(certificate), str(key), str(self.folder / "ca.pem"))

    def ready(self, broker_id: int) -> dict[str, str]:
        path = self.cluster.data_dir / "nodes" / str(broker_id) / "ready.json"
        document: dict[str, str] = json.loads(path.read_text())
        return document

    def counted(self, name: str) -> float:
        """Return the value of the controller's counter whose name ends with `name`."""
        with urllib.request.urlopen(self.cluster.brokers[CONTROLLER].metrics_url) as page:
            lines = page.read().decode().splitlines()
        (value,) = (
            float(line.split()[-1])
            for line in lines
            if not line.startswith("#") and line.split()[0].removesuffix("_total").endswith(name)
        )
        return value

    def create(self, broker_id: int, name: str) -> None:
        """Create a topic through a forwarding broker."""
        connection = Connection(self.cluster.bootstrap_server(broker_id))
        response = connection.exchange(create_topics([name]))
        connection.close()
        assert isinstance(response, bytes)
        (topic,) = decode_message(19, 4, response).topics
        assert topic.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """A cluster whose properties name the brokers' certificates (`bridgehead.grpc.certificate`).

    Its clients are anonymous super users, so the tests can create and see every topic. User:admin
    is a super user too: an accepted Envelope that names it would create `stolen`.
    """
    folder, ca = tmp_path_factory.mktemp("channel"), trustme.CA()
    before = SecuredCluster(Cluster(), ca, folder)
    properties = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:ANONYMOUS;User:admin",
    }
    own_files = {broker: before.files("broker", broker) for broker in BROKERS}
    node_properties = {
        broker: {
            "bridgehead.grpc.certificate": files.certificate,
            "bridgehead.grpc.key": files.key,
            "bridgehead.grpc.authority": files.authority,
        }
        for broker, files in own_files.items()
    }
    with Cluster(
        controller=CONTROLLER, properties=properties, node_properties=node_properties
    ) as cluster:
        yield replace(before, cluster=cluster)


@asynccontextmanager
async def connected(
    secured: SecuredCluster, files: ChannelFiles | None, hello: Hello
) -> AsyncIterator[ControllerChannel]:
    """Open a channel to the controller with the given certificates."""
    channel = ControllerChannel(
        secured.ready(CONTROLLER)["grpc"],
        hello,
        on_update=lambda _update: None,
        on_closed=lambda: None,
        lowest_unfinished=lambda: 1,
        applied_zxid=lambda: 0,
        credentials=load_security(files).client if files else None,
        server_name=broker_host(CONTROLLER),
    )
    try:
        yield channel
    finally:
        await channel.close()


def hello_of(secured: SecuredCluster, broker_id: int) -> Hello:
    """Return a Hello with the broker's public incarnation; an unknown broker gets broker 2's."""
    ready = secured.ready(broker_id if broker_id in BROKERS else 2)
    return Hello(broker_id, ready["incarnation"])


def envelope(hello: Hello, sequence: int = 10**9, body: bytes = FRAME[HEADER_BYTES:]) -> Envelope:
    """Return an Envelope with CreateTopics of `stolen` by User:admin."""
    return Envelope(
        identity=RequestIdentity(hello.broker_id, hello.incarnation, sequence),
        request_header=FRAME[:HEADER_BYTES],
        request_data=body,
        principal=ADMIN,
        client_address=b"\x7f\0\0\1",
        listener_name="PLAINTEXT",
        security_protocol="SASL_SSL",
        dialect="shipped",
        remaining_ms=5000,
        request_id=f"forged-{sequence}",
    )


async def sent(channel: ControllerChannel, request: Envelope) -> str:
    """Return the name of the error of the reply, or `closed` if the stream ended."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            response = await channel.send(request)
    except ChannelClosedError:
        return "closed"
    return ErrorCode(response.error_code).name


def assert_nothing_was_created(secured: SecuredCluster) -> None:
    assert "stolen" not in ConfluentAdmin(secured.cluster.bootstrap_server(3)).names()


def test_the_sender_of_an_envelope_is_the_principal_of_its_certificate(
    secured: SecuredCluster,
) -> None:
    secured.create(2, "honest")

    def read(broker_id: int) -> list[dict[str, Any]]:
        files = (secured.cluster.evidence_dir / f"node={broker_id}").glob("*.jsonl")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    received = [event for event in read(CONTROLLER) if event["kind"] == "envelope_received"]
    senders = {event["sender"] for event in received}
    assert senders == {"User:broker"}
    assert any(event["kind"] == "forward_sent" and not event["local"] for event in read(2))


async def test_a_sender_without_cluster_action_is_rejected(secured: SecuredCluster) -> None:
    before = secured.counted("authorization_fail_count")
    hello = hello_of(secured, 9)
    async with connected(secured, secured.files("mallory", 9), hello) as channel:
        reply = await sent(channel, envelope(hello))
    assert reply == "CLUSTER_AUTHORIZATION_FAILED"
    assert secured.counted("authorization_fail_count") == before + 1
    assert_nothing_was_created(secured)


async def test_a_broker_cannot_use_another_brokers_identity(secured: SecuredCluster) -> None:
    rejected, failed = (
        secured.counted("channels_rejected"),
        secured.counted("authorization_fail_count"),
    )
    files = secured.files("broker", 2)
    async with connected(secured, files, hello_of(secured, 3)) as channel:
        assert await sent(channel, envelope(hello_of(secured, 3))) == "closed"
    async with connected(secured, files, hello_of(secured, 2)) as channel:
        reply = await sent(channel, envelope(hello_of(secured, 3)))
        assert reply == "CLUSTER_AUTHORIZATION_FAILED"
        other_incarnation = replace(hello_of(secured, 2), incarnation="another")
        assert await sent(channel, envelope(other_incarnation)) == "CLUSTER_AUTHORIZATION_FAILED"
    assert secured.counted("channels_rejected") == rejected + 1
    assert secured.counted("authorization_fail_count") == failed + 2
    assert_nothing_was_created(secured)


async def test_a_stream_needs_a_certificate_of_the_brokers_authority(
    secured: SecuredCluster,
) -> None:
    hello = hello_of(secured, 2)
    stranger = secured.files("broker", 2, trustme.CA())
    for files in (stranger, None):
        async with connected(secured, files, hello) as channel:
            assert await sent(channel, envelope(hello)) == "closed"
    issued = secured.ca.issue_cert("localhost", common_name="broker")
    certificate, key = secured.folder / "nobody.pem", secured.folder / "nobody.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    rejected = secured.counted("channels_rejected")
    unnamed = ChannelFiles(str(certificate), str(key), str(secured.folder / "ca.pem"))
    async with connected(secured, unnamed, hello) as channel:
        assert await sent(channel, envelope(hello)) == "closed"
    assert secured.counted("channels_rejected") == rejected + 1
    assert_nothing_was_created(secured)


async def test_a_broker_connects_only_to_the_expected_controller(secured: SecuredCluster) -> None:
    hello = hello_of(secured, 2)
    channel = ControllerChannel(
        secured.ready(3)["grpc"],
        hello,
        on_update=lambda _update: None,
        on_closed=lambda: None,
        lowest_unfinished=lambda: 1,
        applied_zxid=lambda: 0,
        credentials=load_security(secured.files("broker", 2)).client,
        server_name=broker_host(1),
    )
    assert await sent(channel, envelope(hello)) == "closed"
    await channel.close()


INNER_ENVELOPE = b"\0\x3a" + b"\0\0" + FRAME[4:HEADER_BYTES] + b"\0"


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        ({"request_data": FRAME[HEADER_BYTES:-3]}, "UNSUPPORTED_VERSION"),
        ({"request_data": b""}, "UNSUPPORTED_VERSION"),
        ({"request_header": FRAME[:5]}, "UNSUPPORTED_VERSION"),
        ({"request_header": b""}, "UNSUPPORTED_VERSION"),
        ({"request_header": INNER_ENVELOPE}, "INVALID_REQUEST"),
        ({"principal": b""}, "PRINCIPAL_DESERIALIZATION_FAILURE"),
        ({"principal": ADMIN[:-2]}, "PRINCIPAL_DESERIALIZATION_FAILURE"),
        ({"principal": b"\0\7" + ADMIN[2:]}, "PRINCIPAL_DESERIALIZATION_FAILURE"),
        ({"client_address": b"\x7f\0\0"}, "INVALID_REQUEST"),
        # A replay: broker 2 has reported its first request as finished.
        ({"identity": 1}, "INVALID_REQUEST"),
    ],
    ids=[
        *("cut-body", "no-body", "cut-header", "no-header", "inner-envelope"),
        *("no-principal", "cut-principal", "newer-principal", "short-address", "replayed"),
    ],
)
async def test_a_malformed_envelope_is_rejected_and_counted(
    secured: SecuredCluster, change: dict[str, object], reply: str
) -> None:
    for name in ("first", "second"):
        secured.create(2, name)
    before = secured.counted("envelopes_rejected")
    hello = hello_of(secured, 2)
    request = envelope(hello)
    if "identity" in change:
        request = replace(request, identity=request.identity._replace(sequence=1))
    else:
        request = replace(request, **change)  # type: ignore[arg-type]
    async with connected(secured, secured.files("broker", 2), hello) as channel:
        assert await sent(channel, request) == reply
    assert secured.counted("envelopes_rejected") == before + 1
    assert_nothing_was_created(secured)


async def test_an_oversized_envelope_closes_only_its_stream(secured: SecuredCluster) -> None:
    hello = hello_of(secured, 2)
    async with connected(secured, secured.files("broker", 2), hello) as channel:
        assert await sent(channel, envelope(hello, body=bytes(111 * 2**20))) == "closed"
    secured.create(2, "afterwards")
    assert_nothing_was_created(secured)
