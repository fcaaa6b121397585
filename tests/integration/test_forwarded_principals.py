"""Each forwarded request is decided with its client's principal (F1, principal_is_preserved).

`chaos/forwarded_principals.py` sends the requests; `make forwarded-principals` sends 10,000. The
tests also show that seeded bugs are detected.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from chaos.forwarded_principals import (
    LISTENER,
    USERS,
    NotPropagatedError,
    examine,
    password_of,
    properties,
    run,
    set_up,
)
from event_log.verdicts import Verdict, VerdictRow, worst
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import judge
from tests.integration.private_files import holders, open_to_others

MUTANT_NODE: Final = module_command("chaos.mutant_node", "--mutants")
REQUESTS, FAILOVERS = 400, 2


def judged(history: History) -> dict[str, VerdictRow]:
    return {row.property: row for row, _ in judge(history)}


def mutants(folder: Path, mutant: str) -> Cluster:
    return Cluster(
        brokers=2,
        controller=1,
        data_dir=folder,
        properties=properties(),
        node_command=(*MUTANT_NODE, mutant),
    )


@pytest.mark.long
def test_decisions_are_made_for_the_clients_principal_during_failovers(tmp_path: Path) -> None:
    """The test checks responses and events of twenty users while controllers fail."""
    with Cluster(properties=properties(), data_dir=tmp_path) as cluster:
        counts = asyncio.run(run(cluster, REQUESTS, failovers=FAILOVERS))
    assert counts.wrong == []
    assert counts.answered >= REQUESTS
    assert min(counts.allowed, counts.denied) > REQUESTS // 5
    history = History(read_run(tmp_path))
    seen, verdicts = examine(history), judged(history)
    assert seen.mismatches == ()
    assert seen.users == len(USERS)
    assert seen.elections > FAILOVERS
    assert seen.forwarded > REQUESTS // 3
    assert verdicts["F1"].verdict is Verdict.PASS
    assert verdicts["F1"].judged >= REQUESTS
    assert worst(verdicts.values()) is Verdict.PASS
    assert open_to_others(tmp_path) == []
    held = holders(tmp_path, password_of(USERS[0]).encode())
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
        counts = asyncio.run(run(cluster, 100, failovers=0))
    assert counts.wrong
    history = History(read_run(tmp_path))
    verdicts = judged(history)
    assert verdicts[property_id].verdict is Verdict.FAIL
    assert bool(examine(history).mismatches) is (mutant in ("drop_principal", "swap_principals"))


@pytest.mark.long
def test_broker_with_stale_acls_is_detected(tmp_path: Path) -> None:
    """The mutant keeps the ACLs that it read at start; the test creates its ACLs afterwards."""
    with mutants(tmp_path, "stale_acl_cache") as cluster:
        addresses = {each: cluster.bootstrap_server(each, LISTENER) for each in cluster.brokers}
        with pytest.raises(NotPropagatedError, match="broker 2"):
            asyncio.run(set_up(addresses, propagated_within_s=2))


@pytest.mark.long
def test_reencoded_request_is_detected(tmp_path: Path) -> None:
    """The users get the expected results, but the digests differ."""
    with mutants(tmp_path, "fill_in_default") as cluster:
        counts = asyncio.run(run(cluster, 40, failovers=0))
    assert counts.wrong == []
    verdicts = judged(History(read_run(tmp_path)))
    assert verdicts["F2"].verdict is Verdict.FAIL
    assert verdicts["F1"].verdict is Verdict.PASS
