"""The order of the tests: tests with Spark come first, because they take longest; unit tests last.

All tests of a file run in one worker process (pytest-xdist, `--dist loadfile`), because they share
a cluster or a Spark session.

Hypothesis has no deadline: on a busy machine one random example may take longer than 200 ms.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

_SPARK = "tests/integration/test_pipeline"

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests; the tests of a file keep their order."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(node_id: str) -> int:
    if node_id.startswith(_SPARK):
        return 0
    return 2 if node_id.startswith("tests/unit/") else 1
