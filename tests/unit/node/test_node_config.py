"""A node's properties are checked before anything is opened; each error is one sentence."""

from __future__ import annotations

import pytest

from cluster_model.acl_authorizer import CLASS_NAME
from node.config import NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


def test_listeners_default_to_loopback() -> None:
    (listener,) = read_config(GOOD + "listeners=PLAINTEXT://:0").listeners
    assert listener.host == "127.0.0.1"


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
