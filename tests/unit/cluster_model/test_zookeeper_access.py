"""ZooKeeper credentials of a node, and the ACLs of its znodes."""

from __future__ import annotations

import pytest

from cluster_model.znodes.access import OPEN, Credential, ZnodeAcl, ZooKeeperAccess
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"
WRITER = "bridgehead.zookeeper.controller.credential"
READER = "bridgehead.zookeeper.broker.credential"
SECURE = f"{GOOD}zookeeper.set.acl=true\n"


def test_a_digest_identity_has_zookeepers_digest() -> None:
    """The digest is the example in ZooKeeper's documentation."""
    assert Credential("super", "admin").digest_id == "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="


def test_only_nodes_can_read_sensitive_znodes() -> None:
    """As in Kafka, paths are matched as string prefixes, and everyone may write /consumers."""
    broker = Credential("b", "x")
    access = ZooKeeperAccess(Credential("c", "y"), broker)
    creator, everyone = ZnodeAcl(31, "auth", ""), ZnodeAcl(1, "world", "anyone")
    brokers_read = ZnodeAcl(1, "digest", broker.digest_id)
    for path in ("/config/users", "/config/users/alice/clients/app", "/delegation_token/tokens/x"):
        assert access.acl_of(path) == (creator, brokers_read)
    for path in ("/config/topics/t", "/delegation_token/token_changes", "/brokers/ids/1"):
        assert access.acl_of(path) == (creator, everyone)
    for path in ("/brokers/ids", "/bridgehead/nodes"):
        assert access.acl_of(path) == (creator, everyone, ZnodeAcl(4, "digest", broker.digest_id))
    assert access.acl_of("/consumers") == ZooKeeperAccess().acl_of("/config/users") == OPEN


def test_each_session_has_its_own_credential() -> None:
    """The repr hides passwords."""
    config = read_config(f"{SECURE}{WRITER}=c:write-word\n{READER}=b:read-word\n")
    written, read = config.controller_access.credential, config.broker_access.credential
    assert (written, read) == (Credential("c", "write-word"), Credential("b", "read-word"))
    assert "-word" not in repr(config.controller_access) + repr(config.broker_access)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SECURE, "needs two credentials"),
        (f"{SECURE}{WRITER}=c:secret-word\n", "needs two credentials"),
        (f"{SECURE}{WRITER}=secret-word\n{READER}=b:x\n", "each user:password"),
        (f"{SECURE}{WRITER}=c:secret-word\n{READER}=c:secret-word\n", "name the same user"),
        (f"{GOOD}{WRITER}=c:secret-word\n", "zookeeper.set.acl=true"),
    ],
)
def test_invalid_credentials_are_rejected_at_start_up(text: str, message: str) -> None:
    """The error does not contain a password."""
    with pytest.raises(NodeConfigError) as rejected:
        read_config(text)
    assert message in str(rejected.value)
    assert "secret-word" not in str(rejected.value)
