"""A short attack: every listed attempt and a few thousand mutated frames."""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

import pytest

from tests.hostile.campaign import ALLOWED, Result, catalogue, forbidden_changes, run, table
from tests.hostile.family import Report
from tests.hostile.mutations import Mutator
from tests.hostile.target import started
from tests.hostile.zookeeper import FAMILIES, attack_zookeeper

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion")  # the attacker offers TLS 1.1
CLIENTS = {
    *("confluent_kafka", "cryptography", "grpc", "jwt", "kazoo", "pytest", "trustme", "yaml"),
}


@pytest.mark.long
def test_the_attack_has_no_finding(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    with started(tmp_path) as target:
        result = run(target, frames=2_000, seed=seed)
    text = table(result)
    print(text)
    assert result.findings == [], text
    assert result.tries.total() > 130
    assert result.mutated.sent > 1_900


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_the_long_attack_has_no_finding(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    with started(tmp_path) as target:
        result = run(target, frames=50_000, seed=seed)
    assert result.findings == [], table(result)


@pytest.mark.long
def test_the_attack_reports_topics_that_are_open_to_everyone(tmp_path: Path) -> None:
    """Anonymous writes to topics without ACLs succeed. Responses and znodes show that."""
    with started(tmp_path, {"allow.everyone.if.no.acl.found": "true"}) as target:
        result = run(target, frames=20, seed=1)
    text = "\n".join(result.findings)
    assert "rights, a stranger at the controller: CreateTopics: 0, not 29" in text
    assert "written without rights: " in text
    assert "CreateAcls" not in text


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_attack_on_zookeeper_has_no_finding(tmp_path: Path) -> None:
    report = Report()
    attack_zookeeper(tmp_path, report)
    assert report.findings == []
    assert report.figures == [f"ran: {', '.join(family.__name__ for family in FAMILIES)}"]


def test_a_new_notification_is_a_finding_and_a_purged_one_is_not() -> None:
    change = "/config/changes/config_change_0000000001"
    assert forbidden_changes({change: b""}, {}) == []
    assert forbidden_changes({}, {change: b""}) == [change]
    assert forbidden_changes({"/config/topics/a": b""}, {}) == ["/config/topics/a"]


def test_the_table_fits_80_columns_with_a_finding_in_each_group() -> None:
    result = Result(seed=999_999, served=99_999, longest_wait_s=99.99, grown_bytes=10**9)
    for attempt in catalogue():
        result.tries[attempt.group] += 1
        result.controls[attempt.group] += bool(attempt.right & ALLOWED)
    result.findings = [f"{group}: an attempt: served, not closed" for group in result.tries]
    lines = table(result).splitlines()
    assert [line for line in lines if line.count("1 WRONG")] == lines[1 : len(result.tries) + 1]
    assert max(len(line) for line in lines if not line.startswith("FINDING")) <= 80


def test_the_attacker_knows_only_the_wire() -> None:
    """The attack imports only the standard library, released packages and its own modules."""
    allowed = CLIENTS | set(sys.stdlib_module_names)
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                is_allowed = name.partition(".")[0] in allowed or name.startswith("tests.hostile.")
                assert is_allowed, f"{path.name} imports {name}"


def test_a_seed_determines_the_frames() -> None:
    first, again, other = (list(Mutator(seed).frames(300)) for seed in (1, 1, 2))
    assert first == again != other


def test_no_attempt_is_listed_twice() -> None:
    names = [(attempt.group, attempt.name) for attempt in catalogue()]
    assert len(names) == len(set(names)) > 130
