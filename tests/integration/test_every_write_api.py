"""While controllers are killed, no acknowledged write of any API is lost or executed twice.

Each test first compares the cluster with the clients' own history. Then the judges check the
evidence.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import judge.__main__ as judge_command
import pipeline.__main__ as pipeline_command
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, Route
from chaos.every_write_api import (
    Expectation,
    Report,
    creations,
    deletions,
    differences,
    properties,
    renewal,
    run,
    settings,
)

# Brokers forward these APIs, but the controller writes nothing for them.
NOT_WRITTEN = {ApiKey.UPDATE_FEATURES, ApiKey.LIST_PARTITION_REASSIGNMENTS}


async def attack(folder: Path, objects: int, kills: int) -> Report:
    with Cluster(properties=properties(), data_dir=folder, run=settings(1)) as cluster:
        return await run(cluster, objects, kills)


def assert_good(report: Report, kills: int) -> None:
    assert report.wrong == []
    assert report.kills == kills
    assert report.longest_s < 30


@pytest.mark.long
async def test_a_kill_neither_loses_nor_repeats_a_write_of_any_api(tmp_path: Path) -> None:
    report = await attack(tmp_path, objects=10, kills=1)
    assert_good(report, kills=1)
    assert report.acknowledged > 90
    assert judge_command.main([str(tmp_path)]) == 0


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_many_kills_neither_lose_nor_repeat_a_write_of_any_api(tmp_path: Path) -> None:
    report = await attack(tmp_path, objects=120, kills=10)
    assert_good(report, kills=10)
    assert report.acknowledged > 1_000
    assert judge_command.main([str(tmp_path)]) == 0
    out = str(tmp_path / "tables")
    by_spark = await asyncio.to_thread(
        pipeline_command.main, ["run", "--evidence", str(tmp_path), "--out", out]
    )
    assert by_spark == 0


def test_every_forwarded_api_is_among_the_writes() -> None:
    writes = (*creations("x", 1, 1), renewal("AA=="), *deletions("x", "AA=="))
    written = {write.key for write in writes}
    forwarded = {key for key, spec in API_SPECS.items() if spec.route is Route.FORWARD}
    assert forwarded - NOT_WRITTEN == written


@pytest.mark.parametrize(
    ("found", "is_wrong"),
    [(2, False), (None, True), (3, True)],
    ids=["as acknowledged", "lost", "another value"],
)
def test_a_lost_or_wrong_value_is_reported(found: object, is_wrong: bool) -> None:
    report = Report()
    report.facts["token", "object-1"].note(2, "ok")
    seen = {("token", "object-1"): found} if found is not None else {}
    assert bool(differences(report, seen, broker=1)) is is_wrong


def test_after_an_unknown_reassignment_any_replicas_are_allowed() -> None:
    fact = Expectation()
    fact.note((3,), "info")
    assert fact.allows("replicas", (1, 2))
    fact.note((3,), "ok")
    assert not fact.allows("replicas", (1, 2))


def test_an_unknown_outcome_allows_the_old_and_the_new_value() -> None:
    fact = Expectation()
    fact.note("new", "info")
    assert fact.values == {None, "new"}
    fact.note("newer", "fail")
    assert fact.values == {None, "new"}
