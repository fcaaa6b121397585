"""A real ZooKeeper passes the cases that also test the simulated ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from tests.zookeeper_cases import EXPECTED, Case
from zookeeper_client.session import ZooKeeperSession


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: case.__name__)
async def test_real_zookeeper_passes_the_case(case: Case, zookeeper: Any) -> None:
    opened: list[ZooKeeperSession] = []

    async def open_session() -> ZooKeeperSession:
        session = ZooKeeperSession(
            zookeeper.connect, session_timeout_ms=4000, on_state=lambda _state: None
        )
        opened.append(session)
        await session.open(20)
        await session.create_root()
        return session

    try:
        assert await case(open_session) == EXPECTED[case]
    finally:
        for session in opened:
            await session.close()
