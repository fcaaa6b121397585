"""The version of cluster.json, and of the JSON documents that commands print."""

from __future__ import annotations

from typing import Final

# Incremented when a field changes its meaning or disappears; a new field does not count.
SCHEMA_VERSION: Final = 1
