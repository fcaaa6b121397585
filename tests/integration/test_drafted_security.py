"""A listener that speaks KIP-590's draft serves the ACL and token APIs.

Broker 1 is the controller; alice is a super user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from cluster_model.acls.authorizer import CLASS_NAME
from tests.integration.drafted_listeners import ACL, ACL_FILTER, BOTH_DIALECTS, error_codes
from tests.integration.test_forwarding_metrics import metrics_of

CREATE_ACLS, DELETE_ACLS, CREATE_TOKEN, RENEW_TOKEN, EXPIRE_TOKEN = 30, 31, 38, 39, 40
NONE, NOT_CONTROLLER = 0, 41
REDIRECTED = "num_messages_redirected_count_total"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def cluster(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    properties = {
        **BOTH_DIALECTS,
        "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.drafted.plain.sasl.jaas.config": f'{MODULE} user_alice="alice-secret";',
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:alice;User:broker",
        "delegation.token.secret.key": "key",
    }
    with Cluster(zookeeper=new_chroot(), brokers=2, controller=1, properties=properties) as running:
        yield running


def call(cluster: Cluster, broker: int, key: int, version: int, body: dict[str, Any]) -> Any:
    with Connection(cluster.bootstrap_server(broker, "DRAFTED")) as client:
        assert client.log_in("alice", "alice-secret")
        return client.call(key, version, body, dialect="drafted")


def of_new_token(cluster: Cluster, period: str) -> dict[str, Any]:
    """Return the body of a request that renews or expires a new token."""
    token = call(cluster, 1, CREATE_TOKEN, 2, {"renewers": [], "maxLifetimeMs": -1})
    assert token["errorCode"] == NONE
    return {"hmac": token["hmac"], period: -1}


@pytest.mark.parametrize(
    ("key", "body"),
    [
        pytest.param(CREATE_ACLS, lambda _: ACL, id="CreateAcls"),
        pytest.param(DELETE_ACLS, lambda _: ACL_FILTER, id="DeleteAcls"),
        pytest.param(
            CREATE_TOKEN, lambda _: {"renewers": [], "maxLifetimeMs": -1}, id="CreateToken"
        ),
        pytest.param(RENEW_TOKEN, lambda c: of_new_token(c, "renewPeriodMs"), id="RenewToken"),
        pytest.param(
            EXPIRE_TOKEN, lambda c: of_new_token(c, "expiryTimePeriodMs"), id="ExpireToken"
        ),
    ],
)
def test_only_the_controller_accepts_a_bumped_version_of_acls_and_tokens(
    cluster: Cluster, key: int, body: Callable[[Cluster], dict[str, Any]]
) -> None:
    """KIP-590 §Change AlterConfig Request Routing. Older versions are forwarded in an Envelope."""
    new = 3
    before = metrics_of(cluster, 2)[REDIRECTED]
    assert error_codes(call(cluster, 2, key, new, body(cluster))) == {NOT_CONTROLLER}
    assert error_codes(call(cluster, 1, key, new, body(cluster))) == {NONE}
    assert metrics_of(cluster, 2)[REDIRECTED] == before
    for count, version in enumerate((new - 2, new - 1), 1):
        assert error_codes(call(cluster, 2, key, version, body(cluster))) == {NONE}
        assert metrics_of(cluster, 2)[REDIRECTED] == before + count
