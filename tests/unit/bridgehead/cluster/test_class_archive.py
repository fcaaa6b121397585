"""The archive of ZooKeeper's classes: its file, and when it is read or made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bridgehead.cluster import class_archive
from bridgehead.cluster.java import ARCHIVE_VARIABLE, archive_file, archive_flags, class_path


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java, which is found; the user's cache folder is `cache`."""
    program = tmp_path / "java" / "bin" / "java"
    (tmp_path / "java" / "lib").mkdir(parents=True)
    (tmp_path / "java" / "lib" / "modules").write_bytes(b"first")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(ARCHIVE_VARIABLE, raising=False)
    return program


def test_archive_is_of_one_java_and_one_class_path(java: Path, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"one")
    first = archive_file(java, str(jar))
    assert first is not None
    assert first.parent == tmp_path / "cache" / "bridgehead"
    assert archive_file(java, str(jar)) == first
    (tmp_path / "b.jar").write_bytes(b"one")
    others = [archive_file(java, f"{jar}:{tmp_path}/b.jar")]
    jar.write_bytes(b"three")
    others.append(archive_file(java, str(jar)))
    (java.parents[1] / "lib" / "modules").write_bytes(b"second")
    others.append(archive_file(java, str(jar)))
    assert len({first, *others}) == 4


def test_variable_names_another_archive(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARCHIVE_VARIABLE, "/opt/other.jsa")
    assert archive_file(java, "a.jar") == Path("/opt/other.jsa")


def test_archive_is_read_only_if_nobody_else_can_change_it(tmp_path: Path) -> None:
    archive = tmp_path / "zookeeper.jsa"
    assert archive_flags(None) == archive_flags(archive) == []
    archive.write_bytes(b"classes")
    archive.chmod(0o644)
    assert f"-XX:SharedArchiveFile={archive}" in archive_flags(archive)
    archive.chmod(0o664)
    assert archive_flags(archive) == []


def test_archive_is_made_where_it_is_missing_and_can_be_written(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Making:
        pid = os.getpid()

        def __init__(self, command: list[str], **_: object) -> None:
            started.append(command)

        def kill(self) -> None:
            started.append(["killed"])

        def wait(self) -> int:
            return -9

    monkeypatch.setattr(subprocess, "Popen", Making)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    with class_archive.made_meanwhile(is_useful=False):
        pass
    assert started == []
    with class_archive.made_meanwhile(is_useful=True):
        assert "bridgehead.cluster.class_archive" in started[0]
    assert started[1:] == [["killed"]]
    archive = archive_file(java, class_path())
    assert archive is not None
    for reason in (archive, archive.with_suffix(".failed")):
        reason.touch()
        with class_archive.made_meanwhile(is_useful=True):
            pass
        reason.unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "java" / "bin" / "java"))  # a file
    with class_archive.made_meanwhile(is_useful=True):
        pass
    assert len(started) == 2
