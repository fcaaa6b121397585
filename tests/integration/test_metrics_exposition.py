"""The metrics endpoint over real sockets. Invalid and silent clients do not affect others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from metrics import exposition, names
from metrics.exposition import MetricsServer
from metrics.node_metrics import NodeMetrics


class Served:
    """A running endpoint with its metrics and health."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.metrics = NodeMetrics(registry, now_s=lambda: 100.0)
        self.health = (True, "serving")
        self.server = MetricsServer(registry, lambda: self.health)

    async def call(self, request: bytes) -> tuple[int, str]:
        """Send bytes; return the status (0 if there is no response) and the body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(request)
        try:
            async with asyncio.timeout(60):
                response = (await reader.read(-1)).decode()
        except ConnectionError:
            response = ""
        writer.close()
        head, _, body = response.partition("\r\n\r\n")
        return (int(head.split(" ")[1]) if head else 0), body

    async def get(self, path: str) -> tuple[int, str]:
        return await self.call(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    running = Served()
    await running.server.start("127.0.0.1", 0)
    yield running
    await running.server.stop()


async def test_the_five_metrics_of_kip_590s_draft_are_exposed(served: Served) -> None:
    served.metrics.message_redirected()
    served.metrics.forwarding_began("a")
    status, body = await served.get("/metrics")
    assert status == 200
    for metric in (
        names.CLIENTS_FORWARDING,
        names.CLIENTS_FORWARDING_RATE,
        names.MESSAGES_REDIRECTED,
        names.MESSAGES_REDIRECTED_RATE,
        names.AUTHORIZATION_FAILED,
    ):
        assert metric.original in body
    values = dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    assert values[names.CLIENTS_FORWARDING.name] == "1.0"
    redirected = [
        value for name, value in values.items() if name.startswith(names.MESSAGES_REDIRECTED.name)
    ]
    assert "1.0" in redirected


async def test_health_returns_a_status_and_a_reason(served: Served) -> None:
    assert await served.get("/health") == (200, "serving\n")
    served.health = (False, "no ZooKeeper session")
    assert await served.get("/health") == (503, "no ZooKeeper session\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"\x00\xff\r\n\r\n", 405),
        (b"GET /" + b"x" * 100_000, 0),
    ],
)
async def test_an_invalid_request_does_not_affect_other_requests(
    served: Served, request_bytes: bytes, status: int
) -> None:
    assert (await served.call(request_bytes))[0] == status
    assert (await served.get("/health"))[0] == 200


async def test_a_silent_client_is_disconnected(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "_READ_TIMEOUT_S", 0.05)
    assert (await served.call(b"GET /metr"))[0] == 0


async def test_a_client_that_reads_no_response_is_disconnected(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is larger than the buffers of the sockets."""
    monkeypatch.setattr(exposition, "_WRITE_TIMEOUT_S", 0.05)
    size = 50_000_000
    served.health = (True, "x" * size)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1024)
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(60):
        while not _connections():
            await asyncio.sleep(0)
        await asyncio.wait(_connections())
        assert 0 < len(await reader.read(-1)) < size
    writer.close()


def _connections() -> list[asyncio.Task[Any]]:
    """Return the tasks of the server's connections."""
    tasks = asyncio.all_tasks()
    return [task for task in tasks if getattr(task.get_coro(), "__name__", "") == "_serve"]
