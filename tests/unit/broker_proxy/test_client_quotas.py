"""Quotas on bytes and request time: precedence, throttle times, bounds."""

from __future__ import annotations

import asyncio

import pytest

from broker_proxy.requests.client_quotas import ClientQuotas
from broker_proxy.requests.thread_time import Timed
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import ConfigResource
from tests.unit.broker_proxy.client_requests import a_client

ALICE = KafkaPrincipal("User", "alice")
RATE = {"producer_byte_rate": "100"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def quotas(clock: Clock) -> ClientQuotas:
    return ClientQuotas(11, 1, clock)


def test_a_quota_that_is_not_a_number_throttles_nobody() -> None:
    """AlterClientQuotas accepts NaN for request_percentage, as in Kafka."""
    limited = quotas(Clock())
    limited.update(ConfigResource("clients", "app"), {"request_percentage": "NaN"})
    client = a_client(principal=ALICE, client_id="app")
    assert limited.request_time.charge(client, 1000) == 0


def test_a_client_above_its_byte_rate_is_throttled_until_the_rate_fits() -> None:
    clock = Clock()
    produced = quotas(clock)
    produced.update(ConfigResource("clients", "app"), RATE)
    client = a_client(principal=ALICE, client_id="app")
    assert produced.produced.charge(client, 1000) == 0  # 1000 bytes in 10 s
    assert produced.produced.charge(client, 500) == 5000  # 1500 bytes take 15 s at this rate
    clock.now += 11  # The windows with these bytes have ended.
    assert produced.produced.charge(client, 0) == 0
    assert produced.fetched.charge(client, 10**9) == 0
    assert produced.produced.charge(a_client(principal=ALICE, client_id="other"), 10**9) == 0


def test_a_quota_of_the_user_precedes_a_quota_of_the_client_id() -> None:
    clock = Clock()
    every = quotas(clock)
    every.replace_all("clients", {"app": RATE})
    every.replace_all("users", {"alice": {"producer_byte_rate": "1000000"}})
    client = a_client(principal=ALICE, client_id="app")
    assert every.produced.charge(client, 100_000) == 0
    every.update(ConfigResource("users", "alice"), {})
    assert every.produced.charge(client, 100_000) > 0


def test_bytes_that_were_not_sent_are_not_counted() -> None:
    every = quotas(Clock())
    every.update(ConfigResource("clients", "app"), {"consumer_byte_rate": "100"})
    client = a_client(principal=ALICE, client_id="app")
    assert every.fetched.largest(client) == 1000
    assert every.fetched.charge(client, 1500) > 0
    every.fetched.take_back(client, 1500)
    assert every.fetched.charge(client, 1000) == 0


def test_a_throttle_for_request_time_lasts_at_most_one_window() -> None:
    every = quotas(Clock())
    every.update(ConfigResource("users", "<default>"), {"request_percentage": "1"})
    assert every.request_time.charge(a_client(principal=ALICE), 10**6) == 1000


async def test_the_time_of_a_request_does_not_include_its_waiting() -> None:
    now = 0

    async def work() -> str:
        nonlocal now
        now += 3
        await asyncio.sleep(0)
        now += 4
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.get_running_loop().create_future()
        now += 5
        return "done"

    async def other() -> None:
        nonlocal now
        now += 1000

    timed = Timed(work(), lambda: now)
    task = asyncio.create_task(other())
    assert await timed == "done"
    await task
    assert timed.busy_ns == 12
