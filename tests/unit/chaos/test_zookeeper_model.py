"""The simulated ZooKeeper passes the same cases as a real ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.simulated.network import NetworkLoop
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from tests.zookeeper_cases import EXPECTED, Case


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: case.__name__)
def test_model_passes_the_case(case: Case, seed: int) -> None:
    loop = NetworkLoop(seed)

    async def observe() -> Any:
        service = ZooKeeperService(loop.network, lambda: int(loop.time() * 1000), seed)

        async def open_session() -> SimulatedSession:
            session = SimulatedSession(service, session_timeout_ms=2000, on_state=lambda _: None)
            await session.open(10)
            return session

        return await case(open_session)

    with virtual_host(loop, seed):
        assert loop.run_until_complete(observe()) == EXPECTED[case]
    loop.close()
