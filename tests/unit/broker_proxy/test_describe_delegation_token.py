"""DescribeDelegationToken: which tokens a list of owners selects."""

from __future__ import annotations

from bridgehead.kafka_wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from broker_proxy.apis.admin.describe_delegation_token import DescribeDelegationToken
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.delegation_tokens import DelegationToken, TokenSecret
from cluster_model.principal import KafkaPrincipal
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client
from tests.unit.comparisons import CountedName

ALICE, BOB, CAROL, DAVE = (KafkaPrincipal("User", n) for n in ("alice", "bob", "carol", "dave"))


def token(token_id: str, owner: KafkaPrincipal, *renewers: KafkaPrincipal) -> DelegationToken:
    return DelegationToken(token_id, owner, ALICE, renewers, 1, 2, 3)


async def described(names: list[str], *tokens: DelegationToken) -> list[str]:
    """Return the ids of the tokens that alice gets if she names these owners."""
    cache = TokenCache(TokenSecret("key"), new_salt=bytes)
    cache.replace_all({described_token.token_id: described_token for described_token in tokens})
    api = DescribeDelegationToken(cache, authorize_every_client(False))
    owners = [DescribeDelegationTokenOwner("User", name) for name in names]
    request = a_request(41, 3, principal=ALICE, security_protocol="SASL_SSL")
    response = await api.handle(request, DescribeDelegationTokenRequest(owners))
    return [described_token.token_id for described_token in response.tokens]


async def test_a_listed_owner_selects_tokens_that_it_owns_or_requested_or_may_renew() -> None:
    tokens = token("1", BOB), token("2", CAROL, BOB), token("3", CAROL)
    assert await described(["bob"], *tokens) == ["1", "2"]
    assert await described(["alice"], *tokens) == ["1", "2", "3"]
    assert await described(["dave"], *tokens) == []
    assert await described([], *tokens) == []


async def test_the_time_to_describe_tokens_does_not_grow_with_tokens_times_owners() -> None:
    """If it did, a request of a few MB would block the broker for minutes."""
    before = CountedName.comparisons
    names: list[str] = [CountedName(f"u{number}") for number in range(1000)]
    assert await described(names, *(token(str(number), DAVE) for number in range(50))) == []
    assert CountedName.comparisons - before < 1000
