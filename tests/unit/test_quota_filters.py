"""DescribeClientQuotas: which entities a filter finds, strict and loose (kafka-semantics 3.9)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridgehead.kafka_wire.errors import ApiError
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.describe_client_quotas import DescribeClientQuotas
from cluster_model.entity_names import sanitize
from cluster_model.principal import ANONYMOUS
from cluster_model.records import ConfigResource
from tests.unit.authorizing import saying_to_everybody

CONNECTION = ClientConnectionInfo(
    "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
)
REQUEST = ClientRequest("r", RequestHeader(48, 1, 7, "test"), b"", b"", CONNECTION, 0)
RATE = {"consumer_byte_rate": "5"}
STORED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("users", "u"): {**RATE, "SCRAM-SHA-256": "secret"},
    ("users", "only-scram"): {"SCRAM-SHA-256": "secret"},
    ("users", "only-parent"): {},
    ("users", "<default>"): RATE,
    ("users", "%3Cdefault%3E"): RATE,
    ("users", "u/clients/c"): RATE,
    ("users", "u/clients/<default>"): RATE,
    ("clients", "c"): RATE,
    ("clients", "<default>"): RATE,
    ("ips", "10.0.0.1"): {"connection_creation_rate": "3"},
}
EXACT, DEFAULT, ANY = 0, 1, 2
Part = tuple[str, int, str | None]


class Stored:
    """What is in ZooKeeper."""

    def __init__(self, stored: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self._stored = stored

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        return {ConfigResource(*r): c for r, c in self._stored.items() if r[0] == entity_type}


async def found(
    *parts: Part,
    strict: bool = False,
    stored: Mapping[tuple[str, str], Mapping[str, str]] = STORED,
) -> set[str]:
    """Return the entities as `user/client`; `-` for a part that is not there, None for default."""
    api = DescribeClientQuotas(Stored(stored), saying_to_everybody(True))
    message = DescribeClientQuotasRequest([ComponentData(*part) for part in parts], strict)
    answer = await api.answer(REQUEST, message)
    assert isinstance(answer, DescribeClientQuotasResponse)
    assert "secret" not in repr(answer)
    entities = [{p.entity_type: p.entity_name for p in e.entity} for e in answer.entries or ()]
    return {
        str(entity["ip"])
        if "ip" in entity
        else f"{entity.get('user', '-')}/{entity.get('client-id', '-')}"
        for entity in entities
    }


OF_USERS = {"u/-", "None/-", "<default>/-"}
OF_BOTH = {"u/c", "u/None"}
OF_CLIENTS = {"-/c", "-/None"}


@pytest.mark.parametrize(
    ("parts", "loose", "strict"),
    [
        ([], OF_USERS | OF_BOTH | OF_CLIENTS | {"10.0.0.1"}, set()),
        ([("user", ANY, None)], OF_USERS | OF_BOTH, OF_USERS),
        ([("user", EXACT, "u")], {"u/-"} | OF_BOTH, {"u/-"}),
        ([("user", EXACT, "<default>")], {"<default>/-"}, {"<default>/-"}),
        ([("user", DEFAULT, None)], {"None/-"}, {"None/-"}),
        ([("client-id", ANY, None)], OF_BOTH | OF_CLIENTS, OF_CLIENTS),
        ([("client-id", EXACT, "c")], {"u/c", "-/c"}, {"-/c"}),
        ([("user", ANY, None), ("client-id", ANY, None)], OF_BOTH, OF_BOTH),
        ([("user", ANY, None), ("client-id", DEFAULT, None)], {"u/None"}, {"u/None"}),
        ([("ip", ANY, None)], {"10.0.0.1"}, {"10.0.0.1"}),
        ([("ip", EXACT, "10.0.0.2")], set(), set()),
    ],
)
async def test_a_filter_finds_what_has_each_named_part(
    parts: list[Part], loose: set[str], strict: set[str]
) -> None:
    """A strict one only what has no other part."""
    assert await found(*parts) == loose
    assert await found(*parts, strict=True) == strict


async def test_a_stored_quota_that_is_no_number_is_a_fault_not_a_leak() -> None:
    """Kafka fails the whole request, and its text does not get out."""
    junk = {("users", "u"): {"consumer_byte_rate": "secret"}}
    with pytest.raises(ApiError) as refused:
        await found(stored=junk)
    assert (refused.value.error, refused.value.message) == (-1, None)


@pytest.mark.parametrize("name", ["a b/c%", "ü", "CN=x,O=y", "*", "a+b~c"])
async def test_names_are_readable_however_they_are_stored(name: str) -> None:
    """As a live Kafka told them, whether all or one is asked for; the stored spelling is nobody."""
    stored = sanitize(name)
    entities = {
        ("users", stored): RATE,
        ("clients", stored): RATE,
        ("users", f"{stored}/clients/{stored}"): RATE,
    }
    everything = await found(stored=entities)
    assert everything == {f"{name}/-", f"-/{name}", f"{name}/{name}"}
    assert await found(("user", EXACT, name), stored=entities) == {f"{name}/-", f"{name}/{name}"}
    if stored != name:
        assert await found(("user", EXACT, stored), stored=entities) == set()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_no_znode_can_have_is_a_fault_where_it_alone_is_looked_for(
    name: str,
) -> None:
    """Kafka reads that one znode then, and its client refuses the path; else it reads all."""
    alone: list[list[Part]] = [
        [("ip", EXACT, name)],
        [("user", EXACT, name), ("client-id", DEFAULT, None)],
        [("user", EXACT, "u"), ("client-id", EXACT, name)],
    ]
    for parts in alone:
        with pytest.raises(ApiError) as refused:
            await found(*parts)
        assert (refused.value.error, refused.value.message) == (-1, None)
    for kind in ("user", "client-id"):
        with pytest.raises(ApiError):
            await found((kind, EXACT, name), strict=True)
        assert await found((kind, EXACT, name)) == set()
    assert await found(("user", EXACT, name), ("client-id", ANY, None)) == set()
