"""Each forwarded request is decided for its client's principal (F1, principal_is_preserved).

The load is chaos/workloads/forwarded_principals.py. The tests also show that seeded bugs are
detected.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from bridgehead.application import module_command
from bridgehead.cluster import ClientHistory, Cluster
from chaos.local.run import run
from chaos.scenarios.load import PRINCIPALS_IN_FAILOVER
from chaos.workload import Place
from chaos.workloads.forwarded_principals import (
    FORWARDED_PRINCIPALS,
    LISTENER,
    USERS,
    NotPropagatedError,
    password_of,
    set_up,
)
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, VerdictRow, judge
from tests.integration.processes import holders, open_to_others

MUTANT_NODE: Final = module_command("chaos.mutant_node", "--mutants")


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions in the evidence."""

    executions: int  # executed requests
    forwarded: int  # executed requests that another broker forwarded
    users: int  # users who sent executed requests
    mismatches: tuple[str, ...]  # decisions for a principal other than the authenticated one


def examine(history: History) -> Decisions:
    """Compare the principal of each decision with the login of the client's connection."""
    principal_of = {e["connection"]: e["principal"] for e in history.of_kind["authenticated"]}
    executions, mismatches, users = 0, [], Counter[str]()
    forwarded = 0
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or received["listener"] != LISTENER:
            continue
        executions += 1
        forwarded += received["node"] != event["node"]
        users[event["client_id"]] += 1
        principals = {
            principal_of.get(received["connection"]),
            received["principal"],
            event["principal"],
        }
        if principals != {f"User:{event['client_id']}"}:
            mismatches.append(f"{event['request_id']}: {sorted(map(str, principals))}")
    seen = sum(users[user] > 0 for user in USERS)
    return Decisions(executions, forwarded, seen, tuple(mismatches))


def judged(history: History) -> Mapping[str, VerdictRow]:
    return {row.property: row for row, _ in judge(history)}


def mutants(folder: Path, mutant: str) -> Cluster:
    return Cluster(
        brokers=2,
        controller=1,
        data_dir=folder,
        properties=FORWARDED_PRINCIPALS.properties,
        node_command=(*MUTANT_NODE, mutant),
    )


async def wrong_results(cluster: Cluster, allowed: int) -> list[str]:
    """Let the users send requests until `allowed` of them succeeded; return the wrong results."""
    with ClientHistory(cluster.evidence_dir, "users") as history:
        place = Place(
            address=cluster.bootstrap_server,
            brokers=tuple(cluster.brokers),
            source=random.Random(1),
            history=history,
        )
        load = FORWARDED_PRINCIPALS.start(place)
        work = asyncio.create_task(load.run())
        reached = asyncio.create_task(place.progress.reach(allowed))
        await asyncio.wait((work, reached), return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        load.stop()
        await work
        return await load.wrong()


@pytest.mark.long
def test_decisions_are_made_for_the_clients_principal_during_failovers(tmp_path: Path) -> None:
    """The test checks responses and events of twenty users while controllers fail."""
    steps = tuple(replace(step, after=100) for step in PRINCIPALS_IN_FAILOVER.steps)
    scenario = replace(PRINCIPALS_IN_FAILOVER, steps=steps, after=100)
    result = asyncio.run(run(scenario, 1, tmp_path / "run", lambda _: None))
    assert result.wrong == []
    assert result.verdict is Verdict.PASS
    history = History(read_run(tmp_path / "run"))
    seen, verdicts = examine(history), judged(history)
    assert seen.mismatches == ()
    assert seen.users == len(USERS)
    assert seen.forwarded > seen.executions // 3
    assert verdicts["F1"].verdict is Verdict.PASS
    assert verdicts["F1"].judged >= result.acknowledged
    assert open_to_others(tmp_path) == []
    held = holders(tmp_path / "run", password_of(USERS[0]).encode())
    assert held == {f"nodes/{broker}/node.properties" for broker in (1, 2, 3)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("mutant", "property_id"),
    [
        ("drop_principal", "F1"),
        ("swap_principals", "F1"),
        ("broker_host", "F1"),
        ("allow_before_deny", "A1"),
    ],
)
def test_decision_for_another_principal_is_detected(
    tmp_path: Path, mutant: str, property_id: str
) -> None:
    """The users get unexpected results, and the judge finds violations."""
    with mutants(tmp_path, mutant) as cluster:
        assert asyncio.run(wrong_results(cluster, 30))
    history = History(read_run(tmp_path))
    verdicts = judged(history)
    assert verdicts[property_id].verdict is Verdict.FAIL
    assert bool(examine(history).mismatches) is (mutant in ("drop_principal", "swap_principals"))


@pytest.mark.long
def test_broker_with_stale_acls_is_detected(tmp_path: Path) -> None:
    """The mutant keeps the ACLs that it read at start; the test creates ACLs after that."""
    with mutants(tmp_path, "stale_acl_cache") as cluster:
        addresses = {
            broker: cluster.bootstrap_server(broker, LISTENER) for broker in cluster.brokers
        }
        with pytest.raises(NotPropagatedError, match="broker 2"):
            asyncio.run(set_up(addresses, propagated_within_s=2))


@pytest.mark.long
def test_reencoded_request_is_detected(tmp_path: Path) -> None:
    """The users get the expected results, but a request's digest differs at the controller (F2)."""
    with mutants(tmp_path, "fill_in_default") as cluster:
        assert asyncio.run(wrong_results(cluster, 20)) == []
    verdicts = judged(History(read_run(tmp_path)))
    assert verdicts["F2"].verdict is Verdict.FAIL
    assert verdicts["F1"].verdict is Verdict.PASS
