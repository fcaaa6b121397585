"""Delegation tokens: rights, lifetimes, znodes and resends."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from bridgehead.kafka_wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from bridgehead.kafka_wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.delegation_tokens import (
    DelegationToken,
    TokenIndex,
    TokenSecret,
    can_request_tokens,
)
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from cluster_model.znodes.operations import Create, Delete, SetData
from cluster_model.znodes.tokens import TokenZnode
from controller.apis.base import AdminApi, Outcome, Results
from controller.apis.create_delegation_token import CreateDelegationToken
from controller.apis.expire_delegation_token import ExpireDelegationToken
from controller.apis.renew_delegation_token import RenewDelegationToken
from controller.apis.token_changes import TokenFinder
from controller.loop.background_jobs import remove_expired_tokens
from controller.store.outcomes import RequestOutcomes, decode_outcomes, encode_outcomes
from controller.store.plan import plan_operations
from envelope.messages import RequestIdentity
from tests.unit.broker_proxy.client_requests import Rule
from tests.unit.controller.request_contexts import a_context

KEY, NOW, DAY = "token-master-key", 1_700_000_000_000, 86_400_000
LONG_MAX = 2**63 - 1
SECRET = TokenSecret(KEY)
ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
ZNODES = Path(__file__).parents[2] / "recordings" / "znodes-direct-secured.jsonl.gz"


class Cluster:
    """The decisions of a controller with a manual clock."""

    def __init__(self, secret: TokenSecret | None = SECRET) -> None:
        finder = TokenFinder(secret)
        self.apis: Mapping[int, AdminApi] = {
            38: CreateDelegationToken(secret, 7 * DAY, DAY),
            39: RenewDelegationToken(finder, DAY),
            40: ExpireDelegationToken(finder),
        }
        self.image, self.now_ms, self.source = MetadataImage(), NOW, random.Random(7)
        self.outcomes: dict[str, Outcome] = {}
        self.planned: list[Any] = []

    def call(
        self,
        key: int,
        request: Any,
        principal: KafkaPrincipal = ALICE,
        *,
        protocol: str = "SASL_SSL",
        rule: Rule | bool = False,
        committed: Mapping[str, Outcome] | None = None,
    ) -> Any:
        context = a_context(
            key,
            2,
            rule,
            principal=principal,
            listener_name="SASL",
            security_protocol=protocol,
            random=self.source,
            now_ms=self.now_ms,
        )
        api = self.apis[key]
        decision = api.decide(context, request, self.image, committed or {})
        self.outcomes = dict(committed or {}) | {e.element: e.outcome for e in decision.elements}
        for element in decision.elements:
            self.planned = plan_operations(element.records, self.image)
            self.image = self.image.replay(element.records)
        return api.response(context, request, Results(self.outcomes, self.image))

    def issue(self, principal: KafkaPrincipal = ALICE, *renewers: str, **fields: Any) -> Any:
        return self.call(38, creation(*renewers, **fields), principal, rule=True)

    def token(self, token_id: str) -> DelegationToken:
        return self.image.tokens[token_id]


def creation(*renewers: str, **fields: Any) -> CreateDelegationTokenRequest:
    named = [CreatableRenewers(*renewer.split(":", 1)) for renewer in renewers]
    defaults = {"owner_principal_type": None, "owner_principal_name": None, "max_lifetime_ms": -1}
    return CreateDelegationTokenRequest(renewers=named, **{**defaults, **fields})


def renewal(proof: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(proof, period_ms)


def expiry(proof: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(proof, period_ms)


def name_of(result: Any) -> str:
    return ErrorCode(result.error_code).name.removeprefix("DELEGATION_TOKEN_")


def test_a_token_has_kafkas_times() -> None:
    """The maximum lifetime limits the expiry time, and a config limits the maximum lifetime."""
    cluster = Cluster()
    result = cluster.issue(ALICE, "User:bob")
    assert (result.issue_timestamp_ms, result.expiry_timestamp_ms, result.max_timestamp_ms) == (
        NOW,
        NOW + DAY,
        NOW + 7 * DAY,
    )
    assert (result.principal_name, result.token_requester_principal_name) == ("alice", "alice")
    assert result.hmac == SECRET.hmac(result.token_id)
    assert len(base64.urlsafe_b64decode(result.token_id + "==")) == 16
    assert cluster.token(result.token_id).renewers == (BOB,)
    short, long = cluster.issue(max_lifetime_ms=5), cluster.issue(max_lifetime_ms=LONG_MAX)
    assert (short.expiry_timestamp_ms, short.max_timestamp_ms) == (NOW + 5, NOW + 5)
    assert long.max_timestamp_ms == cluster.issue(max_lifetime_ms=0).max_timestamp_ms


def test_a_token_and_its_notification_are_written_together() -> None:
    """The token's znode is created, set or deleted, each time with a notification of its id."""
    cluster = Cluster()
    result = cluster.issue()
    path, change = TokenZnode.path(result.token_id), "/delegation_token/token_changes/token_change_"
    created, notification = cluster.planned
    assert (type(created), created.path) == (Create, path)
    assert notification == Create(change, result.token_id.encode(), sequential=True)
    cluster.call(39, renewal(result.hmac))
    assert [type(cluster.planned[0]), cluster.planned[0].path] == [SetData, path]
    cluster.call(40, expiry(result.hmac))
    assert cluster.planned == [Delete(path), notification]
    assert not cluster.image.tokens


@pytest.mark.parametrize(
    ("protocol", "principal", "allowed"),
    [
        ("PLAINTEXT", ALICE, False),
        ("SSL", ANONYMOUS, False),
        ("SSL", ALICE, True),
        ("SASL_PLAINTEXT", ALICE, True),
        ("SASL_SSL", KafkaPrincipal("User", "alice", token_authenticated=True), False),
    ],
)
def test_token_requests_need_authentication_other_than_a_token(
    protocol: str, principal: KafkaPrincipal, allowed: bool
) -> None:
    assert can_request_tokens(protocol, principal) is allowed
    result = Cluster().call(38, creation(), principal, protocol=protocol)
    assert name_of(result) == ("NONE" if allowed else "REQUEST_NOT_ALLOWED")


def test_a_token_for_another_owner_needs_create_tokens_on_that_user() -> None:
    """The resource name is the whole principal, `User:bob`. The checks have Kafka's order."""
    cluster, checks = Cluster(), []

    def rule(operation: str, kind: str, name: str) -> bool:
        checks.append((operation, kind, name))
        return False

    for_bob = creation("Group:x", owner_principal_type="User", owner_principal_name="bob")
    result = cluster.call(38, for_bob, rule=rule)
    assert name_of(result) == "AUTHORIZATION_FAILED"
    assert checks == [("CREATE_TOKENS", "USER", "User:bob")]
    assert (result.principal_name, result.token_requester_principal_name) == ("bob", "alice")
    assert (result.issue_timestamp_ms, result.token_id, result.hmac) == (-1, "", b"")
    assert name_of(cluster.call(38, for_bob, rule=True)) == "INVALID_PRINCIPAL_TYPE"
    for_alice = creation(owner_principal_type="User", owner_principal_name="alice")
    assert name_of(cluster.call(38, for_alice, rule=rule)) == "NONE"
    assert len(checks) == 1
    untyped = creation(owner_principal_type=None, owner_principal_name="bob")
    assert name_of(cluster.call(38, untyped)) == "UNKNOWN_SERVER_ERROR"


def test_tokens_are_disabled_without_a_secret_key() -> None:
    """The error for an unauthenticated client is still REQUEST_NOT_ALLOWED."""
    cluster = Cluster(None)
    for key, request in ((38, creation()), (39, renewal(b"x")), (40, expiry(b"x"))):
        assert name_of(cluster.call(key, request)) == "AUTH_DISABLED"
        assert name_of(cluster.call(key, request, protocol="PLAINTEXT")) == "REQUEST_NOT_ALLOWED"


def test_only_the_owner_and_renewers_change_a_token() -> None:
    """The creator of a token for another owner can neither renew it nor expire it."""
    cluster = Cluster()
    result = cluster.issue(
        CAROL, "User:bob", owner_principal_type="User", owner_principal_name="alice"
    )
    for principal, error in ((ALICE, "NONE"), (BOB, "NONE"), (CAROL, "OWNER_MISMATCH")):
        assert name_of(cluster.call(39, renewal(result.hmac, 10), principal)) == error
        assert name_of(cluster.call(40, expiry(result.hmac, 10), principal)) == error
    for proof in (b"", b"y" * 64, result.hmac[:-1]):
        assert name_of(cluster.call(39, renewal(proof), ALICE)) == "NOT_FOUND"


def test_a_renewal_is_limited_by_the_maximum_lifetime() -> None:
    """A negative period means the default, and 0 expires the token. Sums overflow as in Java."""
    cluster = Cluster()
    result = cluster.issue()
    token = result.token_id

    def renewed(period_ms: int) -> int:
        response = cluster.call(39, renewal(result.hmac, period_ms))
        assert name_of(response) == "NONE"
        assert cluster.token(token).expiry_ms == response.expiry_timestamp_ms
        return int(response.expiry_timestamp_ms) - NOW

    assert [renewed(period) for period in (1000, -1, 30 * DAY, 0)] == [1000, DAY, 7 * DAY, 0]
    cluster.now_ms += 1
    assert name_of(cluster.call(39, renewal(result.hmac))) == "EXPIRED"
    other = cluster.issue()
    assert cluster.call(39, renewal(other.hmac, LONG_MAX)).expiry_timestamp_ms < 0


def test_an_expired_token_can_only_be_removed() -> None:
    """KAFKA-13771: a negative period removes it."""
    cluster = Cluster()
    result = cluster.issue(max_lifetime_ms=5)
    cluster.now_ms += 6
    assert name_of(cluster.call(40, expiry(result.hmac, 10))) == "EXPIRED"
    removed = cluster.call(40, expiry(result.hmac, -1))
    assert (name_of(removed), removed.expiry_timestamp_ms) == ("NONE", cluster.now_ms)
    again = cluster.call(40, expiry(result.hmac, -1))
    assert (name_of(again), again.expiry_timestamp_ms) == ("NOT_FOUND", -1)


def test_an_expiry_is_limited_by_the_maximum_lifetime() -> None:
    """A period of 0 expires the token now. The token stays until the controller removes it."""
    cluster = Cluster()
    result = cluster.issue()
    for period_ms, left_ms in ((1000, 1000), (30 * DAY, 7 * DAY), (0, 0)):
        response = cluster.call(40, expiry(result.hmac, period_ms))
        assert response.expiry_timestamp_ms - NOW == left_ms
    assert result.token_id in cluster.image.tokens


def test_a_resend_gets_the_same_response_from_the_next_controller() -> None:
    """The next controller needs the outcome, not the token. The outcome contains no secret."""
    first = Cluster()
    made = first.issue(ALICE, "User:bob")
    identity = RequestIdentity(2, "life", 7)
    stored = encode_outcomes(5, [RequestOutcomes(identity, "r", first.outcomes)])
    for form in (made.hmac, base64.b64encode(made.hmac), made.hmac.hex().encode(), KEY.encode()):
        assert form not in stored
    ((_, _, committed),) = decode_outcomes("/x", stored)
    second = Cluster()
    second.now_ms += 5000
    again = second.call(38, creation("User:bob"), committed=committed)
    assert again == made
    assert not second.image.tokens
    removal = first.call(40, expiry(made.hmac))
    stored = encode_outcomes(5, [RequestOutcomes(identity, "r", first.outcomes)])
    ((_, _, committed),) = decode_outcomes("/x", stored)
    assert second.call(40, expiry(made.hmac), committed=committed) == removal


def test_outcomes_that_an_earlier_release_wrote_without_times_are_read() -> None:
    text = b'{"epoch":1,"outcomes":[{"id":[1,"x",2],"request":"r","elements":[["t",0,null,null]]}]}'
    ((_, _, elements),) = decode_outcomes("/x", text)
    assert elements == {"t": Outcome(ErrorCode.NONE)}


def test_a_node_without_the_key_returns_no_hmac() -> None:
    """Somebody may forget to configure the key on one node."""
    outcome = Outcome(ErrorCode.NONE, numbers=(1, 2, 3))
    result = Cluster(None).call(38, creation(), committed={"id": outcome})
    assert (name_of(result), result.hmac, result.token_id) == ("AUTH_DISABLED", b"", "")


def test_expired_tokens_are_removed_in_several_multis() -> None:
    """If a request removes a token meanwhile, the other tokens are still removed."""
    cluster = Cluster()
    short = sorted(cluster.issue(max_lifetime_ms=5).token_id for _ in range(450))
    lasting = cluster.issue().token_id
    removed: list[str] = []
    for records in remove_expired_tokens(lambda: cluster.image, NOW + 6):
        assert len(plan_operations(records, cluster.image)) <= 480
        removed += [record.token_id for record in records]  # type: ignore[union-attr]
        cluster.image = cluster.image.replay(records)
        if short[-1] in cluster.image.tokens:
            cluster.image = cluster.image.replay(
                [type(records[0])(short[-1])]  # type: ignore[call-arg]
            )
    assert (removed, set(cluster.image.tokens)) == (short[:-1], {lasting})


def test_tokens_are_found_by_hmac_after_changes() -> None:
    cluster, index = Cluster(), TokenIndex(SECRET)
    first = cluster.issue()
    assert index.find(first.hmac, cluster.image.tokens) == cluster.token(first.token_id)
    second = cluster.issue()
    for result in (first, second):
        assert index.find(result.hmac, cluster.image.tokens) == cluster.token(result.token_id)
    before = cluster.image.tokens
    cluster.call(40, expiry(first.hmac))
    assert index.find(first.hmac, cluster.image.tokens) is None
    assert index.find(first.hmac, before) is not None


def test_repr_and_str_show_no_secret() -> None:
    cache = TokenCache(SECRET, new_salt=random.randbytes)
    shown = repr(SECRET) + str(SECRET) + repr(cache) + repr(Cluster().apis)
    assert KEY not in shown
