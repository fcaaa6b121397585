"""What a real Kafka needs from this machine: its jars, a suitable Java, memory.

Every error is one sentence that says what to do.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import psutil

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import find_java

# The releases that have both the migration and its fixes, and whose behaviour is described here.
VERSIONS: Final = ("3.9.1", "3.9.2")
_JARS: Final = "~/.cache/bridgehead/kafka-{version}"
_VARIABLE: Final = "BRIDGEHEAD_KAFKA_JARS"
_JAVA_VERSIONS: Final = range(17, 24)  # Kafka 3.9 calls methods that Java 24 removed.
CONTROLLER_HEAP_MIB: Final = 512
BROKER_HEAP_MIB: Final = 256
# What a JVM takes beside its heap, measured with a small heap (see the guide).
_BESIDE_HEAP_MIB: Final = 150
NODE_MIB: Final = 90  # one of our nodes


def find_jars(version: str) -> Path:
    """Return the folder with the jars of a Kafka release.

    Raises:
        ClusterError: the release is unknown, or its jars are not there.
    """
    if version not in VERSIONS:
        raise ClusterError(
            f"Kafka {version} cannot be rehearsed with: choose --kafka {' or '.join(VERSIONS)}."
        )
    folder = Path(os.environ.get(_VARIABLE, _JARS.format(version=version))).expanduser()
    patterns = (f"kafka_2.13-{version}.jar", "slf4j-reload4j-*.jar")  # Kafka, and its log
    if not all(list(folder.glob(pattern)) for pattern in patterns):
        raise ClusterError(
            f"{folder} has no jars of Kafka {version}: run `make kafka-jars KAFKA={version}`, or "
            f"name the folder that has them in {_VARIABLE}."
        )
    return folder


def find_kafkas_java() -> Path:
    """Return a Java that can run Kafka 3.9.

    Raises:
        ClusterError: there is no Java, or its version does not fit.
    """
    try:
        java = find_java()
    except ClusterError:
        raise ClusterError(
            "No Java was found: the controller of Kafka 3.9 needs Java 17 to 23. Install one, for "
            "example openjdk-17-jre-headless, or set JAVA_HOME."
        ) from None
    text = subprocess.run(
        [str(java), "-version"], capture_output=True, text=True, check=False
    ).stderr
    version = re.search(r'version "(\d+)', text)
    if version is None or int(version[1]) not in _JAVA_VERSIONS:
        said = version[1] if version else "unknown"
        raise ClusterError(
            f"{java} is Java {said}, but Kafka 3.9 needs Java 17 to 23: set JAVA_HOME to one."
        )
    return java


def memory_needed_mib(*, nodes: int, controllers: int, brokers: int, zookeeper_mib: int) -> int:
    """Return how much memory the processes of a rehearsal take at most, in MiB."""
    jvms = controllers * (CONTROLLER_HEAP_MIB + _BESIDE_HEAP_MIB)
    # One of our nodes leaves before the JVM of its successor starts.
    swapped = max(0, BROKER_HEAP_MIB + _BESIDE_HEAP_MIB - NODE_MIB) * brokers
    return jvms + swapped + nodes * NODE_MIB + zookeeper_mib + _BESIDE_HEAP_MIB


def check_memory(needed_mib: int, remedy: str) -> None:
    """Check that the machine has `needed_mib` of free memory.

    Raises:
        ClusterError: it has less; the message ends with `remedy`.
    """
    available_mib = psutil.virtual_memory().available >> 20
    if available_mib < needed_mib:
        raise ClusterError(
            f"The rehearsal needs {needed_mib} MiB of memory, and {available_mib} MiB are free: "
            f"{remedy}."
        )
