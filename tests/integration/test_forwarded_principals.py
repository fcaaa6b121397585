"""Whoever asks which broker, whoever is controller: each decision stands for who asked (F1).

Read first: `chaos/forwarded_principals.py` makes the requests; `make forwarded-principals` makes
10,000 of them. Each bug that a node could have there is seeded, and seen.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

import pytest

from bridgehead.cluster import Cluster
from chaos.evidence.finding import read_run
from chaos.forwarded_principals import (
    LISTENER,
    USERS,
    NeverLearnedError,
    examine,
    properties,
    run,
    set_up,
)
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Judgement, Verdict, judge, worst

MUTANT_NODE: Final = (sys.executable, str(Path(__file__).parent / "mutant_node.py"), "--mutants")
REQUESTS, FAILOVERS = 400, 2


def judged(history: History) -> dict[str, Judgement]:
    return {each.property.id: each for each in judge(history, PROPERTIES)}


def mutants(folder: Path, mutant: str) -> Cluster:
    return Cluster(
        brokers=2,
        controller=1,
        data_dir=folder,
        properties=properties(),
        node_command=(*MUTANT_NODE, mutant),
    )


def test_each_decision_stands_for_who_asked_whoever_is_controller(tmp_path: Path) -> None:
    """Twenty users, three brokers, controllers that fail: told by answers and by events."""
    with Cluster(properties=properties(), data_dir=tmp_path) as cluster:
        counts = asyncio.run(run(cluster, REQUESTS, failovers=FAILOVERS))
    assert counts.wrong == []
    assert counts.answered >= REQUESTS
    assert min(counts.allowed, counts.denied) > REQUESTS // 5
    history = History(read_run(tmp_path))
    seen, verdicts = examine(history), judged(history)
    assert seen.strangers == ()
    assert seen.users == len(USERS)
    assert seen.elections > FAILOVERS
    assert seen.forwarded > REQUESTS // 3
    assert verdicts["F1"].verdict is Verdict.PASS
    assert verdicts["F1"].judged >= REQUESTS
    assert worst(list(verdicts.values())) is Verdict.PASS


@pytest.mark.parametrize(
    ("mutant", "accuser"),
    [
        ("drop_principal", "F1"),
        ("swap_principals", "F1"),
        ("broker_host", "F1"),
        ("allow_before_deny", "A1"),
    ],
)
def test_a_decision_for_somebody_else_is_seen(tmp_path: Path, mutant: str, accuser: str) -> None:
    """By the users, whose answers are another's, and by the judge."""
    with mutants(tmp_path, mutant) as cluster:
        counts = asyncio.run(run(cluster, 100, failovers=0))
    assert counts.wrong
    history = History(read_run(tmp_path))
    verdicts = judged(history)
    assert verdicts[accuser].verdict is Verdict.FAIL
    assert bool(examine(history).strangers) is (mutant in ("drop_principal", "swap_principals"))


def test_a_broker_that_never_learns_is_seen(tmp_path: Path) -> None:
    """Rights are made after it has read the ACLs for the first time."""
    with mutants(tmp_path, "stale_acl_cache") as cluster:
        addresses = {each: cluster.bootstrap_server(each, LISTENER) for each in cluster.brokers}
        with pytest.raises(NeverLearnedError, match="broker 2"):
            asyncio.run(set_up(addresses, learn_within_s=2))


def test_a_request_that_is_encoded_anew_is_seen(tmp_path: Path) -> None:
    """No user notices a timeout of the controller's own; the bytes do."""
    with mutants(tmp_path, "fill_in_default") as cluster:
        counts = asyncio.run(run(cluster, 40, failovers=0))
    assert counts.wrong == []
    verdicts = judged(History(read_run(tmp_path)))
    assert verdicts["F2"].verdict is Verdict.FAIL
    assert verdicts["F1"].verdict is Verdict.PASS
