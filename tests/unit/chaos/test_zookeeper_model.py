"""The simulated ZooKeeper passes the same cases as a real ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.simulated.network import NetworkLoop
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper import ZooKeeperModel
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from cluster_model.znodes.operations import ANY_VERSION, Check, Create, SetData
from tests.zookeeper_cases import EXPECTED, Case
from zookeeper_client.wire import encode_operation, open_acl


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


@pytest.mark.parametrize("version", [1, ANY_VERSION])
def test_the_log_has_the_version_that_a_check_found(version: int) -> None:
    """As in PrepRequestProcessor.checkAndIncVersion, even if the check accepts any version."""
    model = ZooKeeperModel(lambda: 0)
    session = model.open_session(2, 0)
    for operation in (Create("/a"), SetData("/a", b"x"), Check("/a", version)):
        model.multi(session, [encode_operation(operation, "", open_acl)])
    assert model.log[-1].operations[0].version == 1
