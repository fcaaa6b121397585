"""DescribeClientQuotas: the entities that a strict or loose filter finds (docs/kafka/quotas.md)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridgehead.kafka_wire.errors import ApiError
from bridgehead.kafka_wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from broker_proxy.apis.admin.describe_client_quotas import DescribeClientQuotas
from cluster_model.records import ConfigResource
from cluster_model.znodes.entity_names import sanitize
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client

REQUEST = a_request(48, 1)
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
    """The configs in ZooKeeper."""

    def __init__(self, stored: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self._stored = stored

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        return {ConfigResource(*r): c for r, c in self._stored.items() if r[0] == entity_type}


async def described(
    *parts: Part,
    strict: bool = False,
    stored: Mapping[tuple[str, str], Mapping[str, str]] = STORED,
) -> set[str]:
    """Return the entities found: an IP address, or `user/client`.

    `-` stands for a missing part, `None` for the default entity.
    """
    api = DescribeClientQuotas(Stored(stored), authorize_every_client(True))
    message = DescribeClientQuotasRequest([ComponentData(*part) for part in parts], strict)
    response = await api.handle(REQUEST, message)
    assert isinstance(response, DescribeClientQuotasResponse)
    assert "secret" not in repr(response)
    entities = [{p.entity_type: p.entity_name for p in e.entity} for e in response.entries or ()]
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
async def test_a_filter_finds_the_entities_that_have_each_part_it_names(
    parts: list[Part], loose: set[str], strict: set[str]
) -> None:
    assert await described(*parts) == loose
    assert await described(*parts, strict=True) == strict


async def test_a_malformed_stored_quota_fails_the_request_and_the_error_hides_it() -> None:
    junk = {("users", "u"): {"consumer_byte_rate": "secret"}}
    with pytest.raises(ApiError) as rejected:
        await described(stored=junk)
    assert (rejected.value.error, rejected.value.message) == (-1, None)


@pytest.mark.parametrize("name", ["a b/c%", "ü", "CN=x,O=y", "*", "a+b~c"])
async def test_stored_names_are_desanitized(name: str) -> None:
    stored = sanitize(name)
    entities = {
        ("users", stored): RATE,
        ("clients", stored): RATE,
        ("users", f"{stored}/clients/{stored}"): RATE,
    }
    everything = await described(stored=entities)
    assert everything == {f"{name}/-", f"-/{name}", f"{name}/{name}"}
    assert await described(("user", EXACT, name), stored=entities) == {
        f"{name}/-",
        f"{name}/{name}",
    }
    if stored != name:
        assert await described(("user", EXACT, stored), stored=entities) == set()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_an_invalid_znode_name_fails_only_filters_for_a_single_entity(
    name: str,
) -> None:
    """For such a filter Kafka reads one znode, and its ZooKeeper client rejects the path."""
    alone: list[list[Part]] = [
        [("ip", EXACT, name)],
        [("user", EXACT, name), ("client-id", DEFAULT, None)],
        [("user", EXACT, "u"), ("client-id", EXACT, name)],
    ]
    for parts in alone:
        with pytest.raises(ApiError) as rejected:
            await described(*parts)
        assert (rejected.value.error, rejected.value.message) == (-1, None)
    for kind in ("user", "client-id"):
        with pytest.raises(ApiError):
            await described((kind, EXACT, name), strict=True)
        assert await described((kind, EXACT, name)) == set()
    assert await described(("user", EXACT, name), ("client-id", ANY, None)) == set()
