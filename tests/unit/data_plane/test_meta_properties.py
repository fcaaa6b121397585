"""A broker uses no log directory of another cluster or broker, as in Kafka."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from data_plane.log.log_directories import LogDirectories
from tests.unit.data_plane.logs import directories

CLUSTER, BROKER = "8vKCv3b4Q_2Vq1u2VbQ0Zg", 7
# Kafka writes a comment with the time, and the keys in any order.
KAFKAS = (
    "#\n#Sun Nov 29 12:00:00 UTC 2026\ncluster.id=8vKCv3b4Q_2Vq1u2VbQ0Zg\nversion=0\nbroker.id=7\n"
)


def with_file(folder: Path, content: str | bytes) -> LogDirectories:
    data = content.encode() if isinstance(content, str) else content
    (folder / "meta.properties").write_bytes(data)
    return directories(folder)


def test_a_log_directory_names_its_cluster_and_broker(tmp_path: Path) -> None:
    logs = directories(tmp_path)
    logs.check_owner(BROKER, None)  # an empty directory may join any cluster
    logs.set_owner(BROKER, CLUSTER)
    assert (tmp_path / "meta.properties").read_text() == (
        f"broker.id={BROKER}\nversion=0\ncluster.id={CLUSTER}\n"
    )
    logs.check_owner(BROKER, CLUSTER)


def test_the_file_of_kafka_is_read_and_kept(tmp_path: Path) -> None:
    logs = with_file(tmp_path, KAFKAS)
    logs.check_owner(BROKER, CLUSTER)
    logs.set_owner(BROKER, CLUSTER)
    assert (tmp_path / "meta.properties").read_text() == KAFKAS


@pytest.mark.parametrize(
    ("content", "broker_id", "cluster_id", "problem"),
    [
        (KAFKAS, BROKER, "other", f"names cluster other, but .* names cluster {CLUSTER}"),
        (KAFKAS, BROKER, None, f"names no cluster, but .* names cluster {CLUSTER}"),
        (KAFKAS, 8, CLUSTER, "broker.id is 8, but .* names broker 7"),
        (KAFKAS.replace("version=0", "version=1"), BROKER, CLUSTER, "without ZooKeeper"),
    ],
)
def test_the_logs_of_another_cluster_or_broker_are_rejected(
    content: str, broker_id: int, cluster_id: str | None, problem: str, tmp_path: Path
) -> None:
    logs = with_file(tmp_path, content)
    with pytest.raises(OSError, match=problem):
        logs.check_owner(broker_id, cluster_id)


@pytest.mark.parametrize(
    "content", ["", "version=0\n", "broker.id=x\ncluster.id=c\n", b"\xff\xfe", "broker.id"]
)
def test_a_damaged_file_is_named_and_replaced(
    content: str | bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = with_file(tmp_path, content)
    logs.check_owner(BROKER, CLUSTER)
    assert f"{tmp_path / 'meta.properties'} is damaged" in caplog.text
    logs.set_owner(BROKER, CLUSTER)
    with pytest.raises(OSError, match="names broker 7"):
        directories(tmp_path).check_owner(9, CLUSTER)


def test_what_is_not_a_file_is_set_aside(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.properties")
    logs = LogDirectories([str(tmp_path)], cast(Any, None))
    logs.check_owner(BROKER, CLUSTER)
    logs.load()
    logs.set_owner(BROKER, CLUSTER)
    assert (tmp_path / "meta.properties").is_file()
    assert (tmp_path / "meta.properties.0.stray").exists()
