"""What a node is told is judged before anything is opened, one sentence for each refusal."""

from __future__ import annotations

import pytest

from cluster_model.acl_authorizer import CLASS_NAME
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


def test_listeners_default_to_loopback() -> None:
    """
    Nobody is reachable from outside who was not told so.
    """
    (listener,) = read_config(GOOD + "listeners=PLAINTEXT://:0").listeners
    assert listener.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ("authorizer.class.name=nowhere.Authorizer", "cannot be imported"),
        ("authorizer.class.name=nonsense", "cannot be imported"),
        ("authorizer.class.name=collections.OrderedDict", "has no method authorize"),
        (f"authorizer.class.name={CLASS_NAME}\nsuper.users=alice", "write User:alice"),
    ],
)
def test_an_authorizer_that_cannot_be_built_is_never_ignored(properties: str, says: str) -> None:
    """
    Without it everything would be allowed.
    """
    with pytest.raises(NodeConfigError, match=says):
        read_config(GOOD + properties)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("zookeeper.connect=127.0.0.1:2181", "broker.id is missing"),
        ("broker.id=1", "zookeeper.connect is missing"),
        (GOOD + "listeners=CLIENTS://127.0.0.1:9093", "listener.security.protocol.map"),
        (GOOD + "listeners=nonsense", "NAME://host:port"),
    ],
)
def test_a_refusal_says_what_to_do(text: str, says: str) -> None:
    """
    One sentence, no stack trace.
    """
    with pytest.raises(Exception, match=says):
        read_config(text)
