"""A hatchling build hook that copies the jars of the embedded ZooKeeper into the wheel.

The jars come from the PySpark in the build environment. requirements/dev.lock pins the version
and digest of PySpark (docs/adr/0010-jars-in-the-wheel.md). pyproject.toml names the same version
for isolated builds, such as `pip install git+URL`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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
        for jar in map(Path, jars):
            build_data["force_include"][str(jar)] = f"bridgehead/_zookeeper/{jar.name}"
