"""The version of the JSON documents that commands print and of cluster.json."""

from __future__ import annotations

from typing import Final

# Incremented when a field changes its meaning or disappears; a new field does not count.
SCHEMA_VERSION: Final = 1
