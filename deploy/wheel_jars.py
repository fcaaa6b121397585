"""A hatchling build hook that copies the jars of the embedded ZooKeeper into the wheel.

The jars come from the PySpark in the build environment (docs/adr/0010-jars-in-the-wheel.md).
requirements/dev.lock pins its version and digest, pyproject.toml the version for isolated builds,
such as `pip install git+URL`. In every build the jars must have the digests in
zookeeper_jars.sha256; after an update of PySpark, `sha256sum` writes them again.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIGESTS: Final = Path(__file__).with_name("zookeeper_jars.sha256")


def wrong_digests(jars: Iterable[Path]) -> list[str]:
    """Return the names of the jars whose SHA-256 is not in `DIGESTS`."""
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split() for line in lines)}
    return [
        jar.name
        for jar in jars
        if digests.get(jar.name) != hashlib.sha256(jar.read_bytes()).hexdigest()
    ]


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # no configuration of its own
    """Adds `bridgehead/_zookeeper/*.jar`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jars to the wheel. Raises RuntimeError if the environment has no jars."""
        sys.path.insert(0, self.root)
        try:
            from bridgehead.cluster.errors import ClusterError
            from bridgehead.cluster.java import class_path

            jars = class_path().split(":")
        except (ImportError, ClusterError) as error:
            raise RuntimeError(
                "The jars of ZooKeeper are missing from this environment: build the wheel with "
                f"`make wheel`. ({error})"
            ) from error
        finally:
            sys.path.remove(self.root)
        wrong = wrong_digests(map(Path, jars))
        if wrong:
            raise RuntimeError(f"These jars are not the ones that we ship: {', '.join(wrong)}.")
        for jar in map(Path, jars):
            build_data["force_include"][str(jar)] = f"bridgehead/_zookeeper/{jar.name}"
