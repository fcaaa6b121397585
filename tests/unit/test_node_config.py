"""What a node is told is judged before anything is opened, one sentence for each refusal."""

from __future__ import annotations

import pytest

from node.config import NOT_SERVED_YET, NodeConfigError, read_config

GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


def test_listeners_default_to_loopback() -> None:
    """
    Nobody is reachable from outside who was not told so.
    """
    (listener,) = read_config(GOOD + "listeners=PLAINTEXT://:0").listeners
    assert listener.host == "127.0.0.1"


@pytest.mark.parametrize("name", NOT_SERVED_YET)
def test_what_kafka_would_obey_and_we_cannot_is_refused(name: str) -> None:
    """
    A policy or an authorizer that is configured is never silently ignored.
    """
    with pytest.raises(NodeConfigError, match="not served yet"):
        read_config(f"{GOOD}{name}=anything")


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
