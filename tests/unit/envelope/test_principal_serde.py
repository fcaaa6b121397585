"""Serialization of principals; malformed bytes are an error, never a default principal."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from envelope.principal_serde import (
    CustomPrincipalSerde,
    DefaultPrincipalSerde,
    FakePrincipalSerde,
    PrincipalDeserializationError,
    PrincipalSerde,
)

ALICE = bytes.fromhex("0000 05 55736572 06 616c696365 00 00")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def test_user_alice_is_serialized_to_kafkas_bytes() -> None:
    serde = DefaultPrincipalSerde()
    assert serde.serialize(KafkaPrincipal("User", "alice")) == ALICE
    assert serde.deserialize(ALICE) == KafkaPrincipal("User", "alice")


def test_token_authentication_is_serialized() -> None:
    serde = DefaultPrincipalSerde()
    data = serde.serialize(KafkaPrincipal("User", "alice", token_authenticated=True))
    assert data == bytes.fromhex("0000 05 55736572 06 616c696365 01 00")
    assert serde.deserialize(data).token_authenticated


@given(TEXTS, st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.booleans())
def test_principals_round_trip(kind: str, name: str, token: bool) -> None:
    serde = DefaultPrincipalSerde()
    principal = KafkaPrincipal(kind, name, token)
    back = serde.deserialize(serde.serialize(principal))
    assert (back.type, back.name, back.token_authenticated) == (kind, name, token)


def test_unknown_tagged_fields_are_skipped() -> None:
    data = ALICE[:-1] + bytes.fromhex("01 07 03 aabbcc")
    assert DefaultPrincipalSerde().deserialize(data) == KafkaPrincipal("User", "alice")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\1" + ALICE[2:],  # version 1
        b"\xff\xff" + ALICE[2:],  # version -1
        ALICE + b"\0",  # a byte too many
        bytes.fromhex("0000 00 06 616c696365 00 00"),  # no type
        bytes.fromhex("0000 01 06 616c696365 00 00"),  # an empty type
        bytes.fromhex("0000 05 55736572 ff 616c696365 00 00"),  # a name beyond the end
        bytes.fromhex("0000 05 55736572 03 c328 00 00"),  # not UTF-8
        bytes.fromhex("0000 05 55736572 06 616c696365 00 01"),  # the announced tag is missing
        bytes.fromhex("0000 ffffffffffff 55736572"),  # a varint without end
    ],
)
def test_malformed_principals_raise_a_deserialization_error(data: bytes) -> None:
    with pytest.raises(PrincipalDeserializationError):
        DefaultPrincipalSerde().deserialize(data)


@given(st.binary(max_size=40))
def test_random_bytes_raise_only_deserialization_errors(data: bytes) -> None:
    try:
        principal = DefaultPrincipalSerde().deserialize(data)
    except PrincipalDeserializationError:
        return
    assert principal.type


def test_truncated_principals_are_rejected() -> None:
    data = DefaultPrincipalSerde().serialize(ANONYMOUS)
    for end in range(len(data)):
        with pytest.raises(PrincipalDeserializationError):
            DefaultPrincipalSerde().deserialize(data[:end])


@dataclass(frozen=True, slots=True)
class Member(KafkaPrincipal):
    """A custom principal with a group."""

    group: str = ""


class Members:
    """A custom builder's codec. `deserialize` returns `broken` if it is set."""

    def __init__(self, broken: object = None) -> None:
        self._broken = broken

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        assert isinstance(principal, Member)
        return f"{principal.name}/{principal.group}".encode()

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        if self._broken is not None:
            return self._broken  # type: ignore[return-value]
        name, group = data.decode().split("/")
        return Member("User", name, group=group)


def test_a_custom_builder_serializes_its_own_principals() -> None:
    serde = CustomPrincipalSerde("my.Members", Members())
    back = serde.deserialize(serde.serialize(Member("User", "alice", group="admins")))
    assert isinstance(back, Member)
    assert (back.name, back.group) == ("alice", "admins")


def test_each_serde_rejects_the_bytes_of_the_others() -> None:
    serdes: list[PrincipalSerde] = [
        DefaultPrincipalSerde(),
        CustomPrincipalSerde("my.Members", Members()),
        CustomPrincipalSerde("your.Members", Members()),
        FakePrincipalSerde(),
    ]
    alice = Member("User", "alice", group="admins")
    for writer in serdes:
        for reader in serdes:
            if reader is writer:
                assert reader.deserialize(writer.serialize(alice)).name == "alice"
            else:
                with pytest.raises(PrincipalDeserializationError):
                    reader.deserialize(writer.serialize(alice))


@pytest.mark.parametrize("broken", [ANONYMOUS.name, 5, [], False])
def test_an_invalid_result_of_a_codec_is_rejected(broken: object) -> None:
    good = CustomPrincipalSerde("my.Members", Members())
    data = good.serialize(Member("User", "alice", group="admins"))
    with pytest.raises(PrincipalDeserializationError):
        CustomPrincipalSerde("my.Members", Members(broken)).deserialize(data)
    for end in range(len(data) - len("alice/admins") + len("alice/")):
        with pytest.raises(PrincipalDeserializationError):
            good.deserialize(data[:end])


def test_a_fake_principal_matches_no_user() -> None:
    serde = FakePrincipalSerde()
    data = serde.serialize(KafkaPrincipal("User", "alice", token_authenticated=True))
    assert str(serde.deserialize(data)) == "Fake:alice"
    with pytest.raises(PrincipalDeserializationError, match="marked as fake"):
        serde.deserialize(b"\x7f\xff" + ALICE[2:])
    for end in range(len(data)):
        with pytest.raises(PrincipalDeserializationError):
            serde.deserialize(data[:end])
