"""When `up --zookeeper` rejects the ZooKeeper of another cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.other_cluster import rejection

EMPTY: dict[str, Any] = {"cluster_id": None, "brokers": [], "topics": 0}
ALIVE: dict[str, Any] = {"cluster_id": "theirs", "brokers": ["101", "102"], "topics": 7}
STOPPED = {**ALIVE, "brokers": []}


@pytest.mark.parametrize(
    ("contents", "own_id", "adopt", "reason"),
    [
        (EMPTY, None, False, None),
        (STOPPED, None, False, "(7 topics): --adopt"),
        (STOPPED, None, True, None),
        (STOPPED, "theirs", False, None),
        (ALIVE, None, False, "brokers 101, 102 are registered"),
        (ALIVE, None, True, "brokers 101, 102 are registered"),
        (ALIVE, "another", True, "brokers 101, 102 are registered"),
        (ALIVE, "theirs", False, None),  # sessions of our brokers that were killed
    ],
)
def test_only_the_owner_or_an_adopter_of_stopped_brokers_may_use_a_zookeeper(
    contents: dict[str, Any], own_id: str | None, adopt: bool, reason: str | None
) -> None:
    text = rejection("z:2181/k", contents, own_id=own_id, adopt=adopt)
    if reason is None:
        assert text is None
    else:
        assert text is not None
        assert reason in text
        assert text.startswith("z:2181/k ")
        assert "--read-only" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adopt": True}, "need --zookeeper"),
        ({"read_only": True}, "need --zookeeper"),
        ({"zookeeper": "z:2181", "adopt": True, "read_only": True}, "exclude each other"),
        (
            {"zookeeper": "z:1", "read_only": True, "overrides": ["zookeeper.ssl.protocol=x"]},
            r"remove `zookeeper\.ssl\.protocol`",
        ),
    ],
)
def test_options_that_contradict_each_other_are_errors(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        load_settings(tmp_path, **options)


def test_read_only_starts_an_embedded_zookeeper(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, zookeeper="z:2181/k", read_only=True)
    assert (settings.zookeeper_connect, settings.copied_zookeeper) == (None, "z:2181/k")
