"""How the tests are spread over worker processes (pytest-xdist).

All tests of a file run in one worker, because they share clusters. All Spark tests run in one
worker, because they share a session; they take longest, so they start first.
"""

from __future__ import annotations

import pytest

SPARK = ("tests/integration/test_pipeline.py", "tests/integration/test_pipeline_cluster.py")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its group for `--dist loadgroup`, Spark's first, unit tests last."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group("spark" if file in SPARK else file))
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(node_id: str) -> int:
    if node_id.startswith(SPARK):
        return 0
    return 2 if node_id.startswith("tests/unit/") else 1
