"""As whom a node comes to ZooKeeper, and what its znodes allow."""

from __future__ import annotations

import pytest

from cluster_model.znode_access import OPEN, Credential, ZnodeAcl, ZooKeeperAccess
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"
WRITER = "bridgehead.zookeeper.controller.credential"
READER = "bridgehead.zookeeper.broker.credential"
SECURE = f"{GOOD}zookeeper.set.acl=true\n"


def test_an_identity_is_the_one_that_zookeeper_makes() -> None:
    """The example of ZooKeeper's own documentation."""
    assert Credential("super", "admin").digest_id == "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="


def test_sensitive_znodes_are_for_the_nodes_alone_and_everything_else_is_read_by_all() -> None:
    """Sensitive is a plain prefix, as in Kafka; the consumers' znode stays open."""
    broker = Credential("b", "x")
    access = ZooKeeperAccess(Credential("c", "y"), broker)
    creator, everybody = ZnodeAcl(31, "auth", ""), ZnodeAcl(1, "world", "anyone")
    brokers_read = ZnodeAcl(1, "digest", broker.digest_id)
    for path in ("/config/users", "/config/users/alice/clients/app", "/delegation_token/tokens/x"):
        assert access.acl_of(path) == (creator, brokers_read)
    for path in ("/config/topics/t", "/delegation_token/token_changes", "/brokers/ids/1"):
        assert access.acl_of(path) == (creator, everybody)
    for path in ("/brokers/ids", "/bridgehead/nodes"):
        assert access.acl_of(path) == (creator, everybody, ZnodeAcl(4, "digest", broker.digest_id))
    assert access.acl_of("/consumers") == ZooKeeperAccess().acl_of("/config/users") == OPEN


def test_each_session_has_a_credential_of_its_own() -> None:
    """And neither shows its password."""
    config = read_config(f"{SECURE}{WRITER}=c:write-word\n{READER}=b:read-word\n")
    written, read = config.controller_access.credential, config.broker_access.credential
    assert (written, read) == (Credential("c", "write-word"), Credential("b", "read-word"))
    assert "-word" not in repr(config.controller_access) + repr(config.broker_access)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SECURE, "needs two credentials"),
        (f"{SECURE}{WRITER}=c:secret-word\n", "needs two credentials"),
        (f"{SECURE}{WRITER}=secret-word\n{READER}=b:x\n", "each user:password"),
        (f"{SECURE}{WRITER}=c:secret-word\n{READER}=c:secret-word\n", "name one user"),
        (f"{GOOD}{WRITER}=c:secret-word\n", "zookeeper.set.acl=true"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_start(text: str, says: str) -> None:
    """In one sentence that shows no password."""
    with pytest.raises(NodeConfigError) as refused:
        read_config(text)
    assert says in str(refused.value)
    assert "secret-word" not in str(refused.value)
