"""Clusters that cannot be reset."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.reset import reset


@pytest.mark.parametrize(
    ("properties", "node_properties"),
    [
        ({"delegation.token.secret.key": "s"}, {}),
        ({}, {2: {"delegation.token.master.key": "s"}}),
    ],
)
async def test_a_cluster_that_may_have_tokens_is_not_reset(
    properties: dict[str, str], node_properties: dict[int, dict[str, str]]
) -> None:
    settings = SimpleNamespace(properties=properties, node_properties=node_properties)
    cluster: Any = SimpleNamespace(settings=settings, was_upgraded=False)
    with pytest.raises(ClusterError, match="Delegation tokens cannot be removed"):
        await reset(cluster)
