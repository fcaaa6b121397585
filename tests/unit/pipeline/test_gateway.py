"""The start of Spark's Java. In these tests a script replaces Java."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.pipeline_profile import Cost, read_event_log, table
from pipeline import gateway as started
from pipeline.session import class_archive

_forks: list[int] = []
os.register_at_fork(before=lambda: _forks.append(1))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation of Spark with nothing but a program to start."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(started, "_started", [])
    (tmp_path / "bin").mkdir()
    yield tmp_path
    for process in started._started:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def write_program(home: Path, does: str) -> None:
    program = home / "bin" / "spark-submit"
    program.write_text(f"#!/bin/bash\n{does}\n", encoding="utf-8")
    program.chmod(0o755)


# The program writes port 258 and a secret of four letters. It ends when its input is closed.
_STARTS = (
    r"printf '\0\0\1\2\0\0\0\4abcd' > $_PYSPARK_DRIVER_CONN_INFO_PATH.part; "
    "mv $_PYSPARK_DRIVER_CONN_INFO_PATH.part $_PYSPARK_DRIVER_CONN_INFO_PATH; "
    'echo "$@" > $SPARK_HOME/arguments; cat'
)


def test_java_is_started_without_a_fork_and_hidden_from_child_processes(home: Path) -> None:
    """With gRPC in the process, a signal killed one in ten forked children."""
    write_program(home, _STARTS)
    before = len(_forks)
    with started.gateway({"spark.driver.memory": "1g"}):
        assert os.environ["PYSPARK_GATEWAY_PORT"] == "258"
        assert os.environ["PYSPARK_GATEWAY_SECRET"] == "abcd"
    assert "PYSPARK_GATEWAY_PORT" not in os.environ
    assert "PYSPARK_GATEWAY_SECRET" not in os.environ
    assert len(_forks) == before
    with started.gateway({}):
        assert "PYSPARK_GATEWAY_PORT" not in os.environ, "a second Java was started"
    assert len(started._started) == 1


def test_java_that_exits_is_an_error(home: Path) -> None:
    """The next attempt starts another Java."""
    write_program(home, "exit 3")
    ended = pytest.raises(started.GatewayError, match="Java did not start Spark and ended with 3")
    with ended, started.gateway({}):
        pass
    assert started._started == []


def test_missing_program_is_an_error(home: Path) -> None:
    with pytest.raises(started.GatewayError, match="cannot be started"), started.gateway({}):
        pass


# The archive of loaded classes that shortens the start of Spark's Java.


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that has an archive of its own classes."""
    home = tmp_path / "java"
    for name in ("bin/java", "lib/modules", "lib/server/classes.jsa"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    return home / "bin" / "java"


def test_missing_archive_is_written_at_exit_and_then_read(java: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archives"
    written = class_archive(java, folder).split()[-1]
    option, _, name = written.partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    archive = Path(name)
    assert archive.parent == folder
    archive.write_bytes(b"\0" * 100)
    assert class_archive(java, folder).split()[-1] == written, "Java writes the header last"
    archive.write_bytes(b"\xa8\x0b\x0b\xf0 and so on")
    assert class_archive(java, folder).split()[-1] == f"-XX:SharedArchiveFile={archive}"


def test_each_java_has_its_own_archive(java: Path, tmp_path: Path) -> None:
    before = class_archive(java, tmp_path)
    other = tmp_path / "other"
    java.parents[1].rename(other)
    assert class_archive(other / "bin" / "java", tmp_path) != before


def test_java_without_an_archive_of_its_own_gets_no_option(java: Path, tmp_path: Path) -> None:
    (java.parents[1] / "lib/server/classes.jsa").unlink()
    assert class_archive(java, tmp_path) == ""


def test_folder_that_cannot_be_created_is_not_an_error(java: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert class_archive(java, tmp_path / "file" / "archives") == ""


# What the profile of the pipeline takes from Spark's event log.

JOB = {
    "Event": "SparkListenerJobStart",
    "Job ID": 7,
    "Submission Time": 1_000,
    "Stage IDs": [3, 4],
    "Properties": {"spark.jobGroup.id": "gold/told"},
}
TASK = {
    "Event": "SparkListenerTaskEnd",
    "Stage ID": 4,
    "Task Metrics": {
        "Executor Run Time": 250,
        "Disk Bytes Spilled": 5,
        "Input Metrics": {"Bytes Read": 100, "Records Read": 10},
        "Output Metrics": {"Bytes Written": 40, "Records Written": 4},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 30},
    },
}
END = {"Event": "SparkListenerJobEnd", "Job ID": 7, "Completion Time": 1_500}


def test_tasks_are_counted_for_the_table_of_their_job() -> None:
    costs = read_event_log(map(json.dumps, (JOB, TASK, TASK, END)))
    assert costs == {
        "gold/told": Cost(
            jobs=1,
            running_s=0.5,
            tasks=2,
            task_s=0.5,
            rows_in=20,
            bytes_in=200,
            rows_out=8,
            bytes_out=80,
            shuffled=60,
            spilled=10,
        )
    }


def test_cheap_tables_share_a_row_and_the_last_row_is_the_sum() -> None:
    costs = {"a": Cost(wall_s=50, running_s=20, jobs=3), "b": Cost(wall_s=0.1), "c": Cost(jobs=1)}
    rows = list(table(costs))[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| a", "| 2 others", "| **all**"]
    assert rows[0].startswith("| a | 50.00 | 30.00 | 0.00 | 3 |")
    assert rows[-1].startswith("| **all** | 50.10 | 30.10 | 0.00 | 4 |")
