"""A node's properties are checked before anything is opened; each error is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.broker_certificates import files_of, make_certificates
from broker_proxy.authentication.principals import AuthenticationContext
from cluster_model.acls.authorizer import CLASS_NAME
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import (
    CustomPrincipalSerde,
    DefaultPrincipalSerde,
    FakePrincipalSerde,
)
from node.assembly.security import build_serde
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


def test_listeners_default_to_loopback() -> None:
    (listener,) = read_config(GOOD + "listeners=PLAINTEXT://:0").listeners
    assert listener.host == "127.0.0.1"


LISTENERS = (
    "listeners=CONTROL://:0,INSIDE://:0,OUTSIDE://:0\n"
    "listener.security.protocol.map=CONTROL:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT\n"
)


@pytest.mark.parametrize(
    ("properties", "listener"),
    [
        ("inter.broker.listener.name=INSIDE\n", "INSIDE"),
        ("inter.broker.listener.name=INSIDE\ncontrol.plane.listener.name=CONTROL\n", "CONTROL"),
        ("inter.broker.listener.name=INSIDE\nbridgehead.forwarding.enable=false\n", None),
    ],
)
def test_the_listener_for_envelopes_is_the_control_plane_listener_or_the_inter_broker_listener(
    properties: str, listener: str | None
) -> None:
    """Without either property it is the listener of security.inter.broker.protocol."""
    assert read_config(GOOD + LISTENERS + properties).listener_for_envelopes == listener
    plain = read_config(GOOD + "listeners=SSL://:0,PLAINTEXT://:0\n")
    assert plain.listener_for_envelopes == "PLAINTEXT"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("authorizer.class.name=nowhere.Authorizer", "cannot be imported"),
        ("authorizer.class.name=nonsense", "cannot be imported"),
        ("authorizer.class.name=collections.OrderedDict", "has no method authorize"),
        (f"authorizer.class.name={CLASS_NAME}\nsuper.users=alice", "write User:alice"),
    ],
)
def test_authorizer_that_cannot_be_built_is_an_error(properties: str, message: str) -> None:
    with pytest.raises(NodeConfigError, match=message):
        read_config(GOOD + properties)


class NamesOnly:
    """A principal builder that cannot serialize principals."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        return KafkaPrincipal("User", "somebody")


class Serializes(NamesOnly):
    def serialize(self, principal: KafkaPrincipal) -> bytes:
        return principal.name.encode()


class SerializesBoth(Serializes):
    def deserialize(self, data: bytes) -> KafkaPrincipal:
        return KafkaPrincipal("User", data.decode())


@pytest.mark.parametrize("key", ["", "listener.name.plaintext."])
@pytest.mark.parametrize("name", ["NamesOnly", "Serializes"])
def test_a_forwarding_broker_needs_a_builder_that_serializes_principals(
    key: str, name: str
) -> None:
    """KIP-590: the principals of a custom builder have no default serialization."""
    builder = f"{key}principal.builder.class={__name__}.{name}"
    config = read_config(f"{GOOD}listeners=PLAINTEXT://:0\n{builder}")
    with pytest.raises(NodeConfigError) as caught:
        build_serde(config)
    lacks = "deserialize" if name == "Serializes" else "serialize and deserialize"
    assert str(caught.value) == (
        f"{builder} lacks {lacks}: a broker that forwards requests needs the methods serialize "
        "and deserialize, which put the client's principal into an Envelope (KIP-590)."
    )


@pytest.mark.parametrize(
    ("properties", "serde"),
    [
        ("principal.builder.class={}SerializesBoth", CustomPrincipalSerde),
        ("", DefaultPrincipalSerde),
        # These two brokers do not forward the principals of their builder.
        (
            "principal.builder.class={}NamesOnly\nbridgehead.forwarding.principals=fake",
            FakePrincipalSerde,
        ),
        (
            "principal.builder.class={}NamesOnly\ninter.broker.protocol.version=3.3",
            DefaultPrincipalSerde,
        ),
    ],
)
def test_a_broker_starts_if_its_builder_serializes_or_its_principals_are_not_forwarded(
    properties: str, serde: type
) -> None:
    config = read_config(GOOD + properties.format(f"{__name__}."))
    assert type(build_serde(config)) is serde


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zookeeper.connect=127.0.0.1:2181", "broker.id is missing"),
        ("broker.id=1", "zookeeper.connect is missing"),
        (GOOD + "listeners=CLIENTS://127.0.0.1:9093", "listener.security.protocol.map"),
        (GOOD + "listeners=nonsense", "NAME://host:port"),
    ],
)
def test_config_errors_name_the_remedy(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        read_config(text)


@pytest.mark.parametrize(
    ("properties", "opens"),
    [
        ("listeners=PLAINTEXT://:0", False),
        ("listeners=CLIENTS://:0", True),
        (f"listeners=PLAINTEXT://:0\nauthorizer.class.name={CLASS_NAME}", True),
        (
            f"listeners=PLAINTEXT://:0\nauthorizer.class.name={CLASS_NAME}\n"
            "inter.broker.listener.name=PLAINTEXT",
            False,
        ),
        ("listeners=CLIENTS://:0\nbridgehead.data.plane=false", False),
    ],
)
def test_broker_opens_a_replication_listener_if_brokers_can_use_no_other_listener(
    tmp_path: Path, properties: str, opens: bool
) -> None:
    make_certificates(tmp_path, {1: "broker"})
    files = files_of(tmp_path, 1)
    config = read_config(
        f"{GOOD}{properties}\nlistener.security.protocol.map=CLIENTS:PLAINTEXT\n"
        f"bridgehead.grpc.certificate={files.certificate}\nbridgehead.grpc.key={files.key}\n"
        f"bridgehead.grpc.authority={files.authority}\n"
    )
    names = [listener.name for listener in config.listeners]
    assert ("REPLICATION" in names, config.opens_replication_listener) == (opens, opens)
    assert config.inter_broker_listener == ("REPLICATION" if opens else "PLAINTEXT")
    if opens:
        tls = config.security["REPLICATION"].tls
        assert tls is not None
        assert tls.client_auth == "required"
