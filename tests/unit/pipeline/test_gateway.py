"""The start of Spark's Java. In these tests a script replaces Java."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import gateway as started

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
