"""The sockets of an admin client."""

from __future__ import annotations

import asyncio

import pytest

from bridgehead.admin import AsyncAdminClient, KafkaTimeoutError


def test_a_malformed_host_name_is_the_reason_of_the_timeout() -> None:
    async def call() -> None:
        async with AsyncAdminClient({"bootstrap.servers": "a..b:9092"}) as admin:
            await admin.with_timeout(1_000).describe_cluster()

    with pytest.raises(KafkaTimeoutError, match=r"The broker at a\.\.b:9092 cannot be reached: "):
        asyncio.run(call())
