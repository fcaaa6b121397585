"""What is missing is said in one sentence that says what to do."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from rehearse import run
from rehearse.kraft.jars import check_memory, find_jars, find_kafkas_java, memory_needed_mib
from rehearse.kraft.storage import feature_level
from rehearse.seeds import healthy
from rehearse.sources.dump import write_dump


def test_missing_jars_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGEHEAD_KAFKA_JARS", str(tmp_path))
    with pytest.raises(ClusterError, match=r"make kafka-jars KAFKA=3\.9\.2"):
        find_jars("3.9.2")
    for name in ("kafka_2.13-3.9.2.jar", "slf4j-reload4j-1.7.36.jar"):
        (tmp_path / name).touch()
    assert find_jars("3.9.2") == tmp_path
    with pytest.raises(ClusterError, match=r"choose --kafka 3\.9\.1 or 3\.9\.2"):
        find_jars("4.0.0")


@pytest.mark.parametrize(("version", "fits"), [("11.0.2", False), ("17.0.1", True), ("25", False)])
def test_java_must_fit(
    version: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if fits:
        assert find_kafkas_java() == java
        return
    with pytest.raises(ClusterError, match=r"Kafka 3\.9 needs Java 17 to 23: set JAVA_HOME"):
        find_kafkas_java()


def test_missing_java_names_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("bridgehead.cluster.java._bundled_java", lambda: None)
    with pytest.raises(ClusterError, match="openjdk-17-jre-headless"):
        find_kafkas_java()


def test_memory_is_checked_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Memory:
        available = 900 << 20

    monkeypatch.setattr(psutil, "virtual_memory", _Memory)
    check_memory(900, "go")
    with pytest.raises(ClusterError, match=r"needs 901 MiB of memory, and 900 MiB are free: go\."):
        check_memory(901, "go")
    few = memory_needed_mib(nodes=3, controllers=1, brokers=0, zookeeper_mib=512)
    many = memory_needed_mib(nodes=3, controllers=3, brokers=3, zookeeper_mib=512)
    assert few < many


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a call of `rehearse run` with a dump, for which nothing has to run."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # of this process
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    write_dump(healthy(), tmp_path / "znodes.jsonl")
    arguments = [f"--dump={tmp_path / 'znodes.jsonl'}", f"--out={tmp_path / 'out'}"]
    return lambda: run.main([*arguments, "--kafka=3.9.2"])


def _one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the command complains about: one sentence with what to do."""
    (complaint,) = capsys.readouterr().err.splitlines()
    assert complaint.endswith(".")
    return complaint


def test_run_without_java_says_what_to_install(
    command: Callable[[], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("bridgehead.cluster.java._bundled_java", lambda: None)
    assert command() == ExitCode.CANNOT_RUN
    assert "Install one, for example openjdk-17-jre-headless" in _one_sentence(capsys)
    assert not (tmp_path / "out").exists()


def test_run_without_jars_says_how_to_get_them(
    command: Callable[[], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("rehearse.run.find_kafkas_java", lambda: Path("java"))
    monkeypatch.setenv("BRIDGEHEAD_KAFKA_JARS", str(tmp_path))
    assert command() == ExitCode.CANNOT_RUN
    assert "run `make kafka-jars KAFKA=3.9.2`" in _one_sentence(capsys)
    assert not (tmp_path / "out").exists()


def test_run_without_memory_says_what_to_leave_out(
    command: Callable[[], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    class _Memory:
        available = 700 << 20

    monkeypatch.setattr("rehearse.run.find_kafkas_java", lambda: Path("java"))
    monkeypatch.setattr("rehearse.run.find_jars", lambda _: tmp_path)
    monkeypatch.setattr(psutil, "virtual_memory", _Memory)
    assert command() == ExitCode.CANNOT_RUN
    complaint = _one_sentence(capsys)
    assert "and 700 MiB are free: stop other programs, or use --until hybrid" in complaint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("level", "number"), [("3.6", 14), ("3.7-IV4", 19), ("3.8", 20), ("3.9", 21)]
)
def test_levels_of_the_metadata(level: str, number: int) -> None:
    assert feature_level(level) == number


@pytest.mark.parametrize("level", ["3.5", "3.6-IV1", "3.3", "4.0-IV1", "x"])
def test_level_that_cannot_migrate_is_named(level: str) -> None:
    with pytest.raises(ClusterError, match=f"not {level}"):
        feature_level(level)
