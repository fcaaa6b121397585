"""While controllers fail, no acknowledged write of any API is lost or executed twice.

The chaos scenario compares the cluster with the clients' history. Then the judge and the pipeline
check the run's evidence.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import pipeline.__main__ as pipeline_command
from bridgehead.cluster import ClientHistory
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, Route
from chaos.local.run import run
from chaos.scenarios.load import HUNDRED_FAILOVERS
from chaos.workload import Disturbances
from chaos.workloads.every_write_api import (
    AllowedValues,
    BrokerConnection,
    Report,
    Worker,
    differences,
)
from chaos.write_requests import creations, deletions, renewal
from judge.verdicts import Verdict

# Brokers forward these APIs, but the controller writes nothing for them.
NOT_WRITTEN = {ApiKey.UPDATE_FEATURES, ApiKey.LIST_PARTITION_REASSIGNMENTS}


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("with_spark", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_faults_neither_lose_nor_repeat_a_write_of_any_api(
    tmp_path: Path, with_spark: bool
) -> None:
    """One round of the scenario: six kills, two pauses and two lost sessions of controllers."""
    expects = replace(HUNDRED_FAILOVERS.expects, elections=(10, None), acknowledged_min=500)
    scenario = replace(HUNDRED_FAILOVERS, rounds=1, expects=expects)
    result = await run(scenario, 1, tmp_path / "run", lambda _: None)
    assert result.wrong == []
    assert result.verdict is Verdict.PASS
    if with_spark:
        options = ["--evidence", str(tmp_path / "run"), "--out", str(tmp_path / "tables")]
        assert await asyncio.to_thread(pipeline_command.main, ["run", *options]) == 0


def test_every_forwarded_api_is_among_the_writes() -> None:
    writes = (*creations("x", 1, 1), renewal("AA=="), *deletions("x", "AA=="))
    written = {write.key for write in writes}
    forwarded = {key for key, spec in API_SPECS.items() if spec.route is Route.FORWARD}
    assert forwarded - NOT_WRITTEN == written


@pytest.mark.parametrize(
    ("value", "is_wrong"),
    [(2, False), (None, True), (3, True)],
    ids=["as acknowledged", "lost", "another value"],
)
def test_a_lost_or_wrong_value_is_reported(value: object, is_wrong: bool) -> None:
    report = Report()
    report.facts["token", "object-1"].note(2, "ok")
    seen = {("token", "object-1"): value} if value is not None else {}
    assert bool(differences(report, seen, broker=1)) is is_wrong


def test_after_a_reassignment_with_an_unknown_outcome_any_replicas_are_allowed() -> None:
    fact = AllowedValues()
    fact.note((3,), "info")
    assert fact.allows("replicas", (1, 2))
    fact.note((3,), "ok")
    assert not fact.allows("replicas", (1, 2))


def test_an_unknown_outcome_allows_the_old_and_the_new_value() -> None:
    fact = AllowedValues()
    fact.note("new", "info")
    assert fact.values == {None, "new"}
    fact.note("newer", "fail")
    assert fact.values == {None, "new"}


class _Connection:
    """Answers every request with INVALID_REPLICA_ASSIGNMENT."""

    async def connect(self) -> None:
        pass

    async def call(self, *_: object) -> dict[str, object]:
        partition = {"partitionIndex": 0, "errorCode": 39}
        return {"errorCode": 0, "responses": [{"name": "object-1", "partitions": [partition]}]}


@pytest.mark.parametrize(
    ("disturbances", "is_wrong"),
    [
        (Disturbances(), True),
        (Disturbances(injected=1), False),
        (Disturbances(injected=1, healed=1), False),
        (Disturbances(injected=1, healed=1, recovered=1), True),
    ],
    ids=["before any fault", "during a fault", "until brokers are back", "afterwards"],
)
async def test_a_reassignment_to_a_missing_broker_may_be_rejected_only_around_a_fault(
    tmp_path: Path, disturbances: Disturbances, is_wrong: bool
) -> None:
    (write,) = (creation for creation in creations("object-1", 1, 2) if creation.kind == "replicas")
    report = Report()
    with ClientHistory(tmp_path / "run=r", "load") as history:
        clients = cast(Mapping[int, BrokerConnection], {1: _Connection()})
        worker = Worker(clients, history, report, random.Random(1), disturbances)
        await worker.send("object-1", write)
    assert bool(report.wrong) is is_wrong
