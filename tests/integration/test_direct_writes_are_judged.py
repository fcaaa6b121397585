"""Who may write what through a broker below the bridge release: A1 judges its writes as well."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from chaos.connection import Connection
from chaos.evidence.finding import read_run
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Verdict, judge
from tests.integration.conftest import StartCluster
from tests.integration.test_forwarding_counts import ask
from tests.integration.test_upgrade import MUTANT_NODE, OLD, set_quota

CREATE_ACLS, DESCRIBE_ACLS = 30, 29
CLUSTER, LITERAL, ANY = 4, 3, 1
ALTER_CONFIGS, ALL, ALLOW, DENY = 11, 2, 3, 2
NONE, CLUSTER_AUTHORIZATION_FAILED = 0, 31
WHO: Final = "User:ANONYMOUS"
SECURED: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:broker",
}


def make_rules(connection: Connection) -> None:
    """Everything is allowed and altering configs is not; the broker knows when it answers."""
    rule = {"resourceType": CLUSTER, "resourceName": "kafka-cluster", "principal": WHO, "host": "*"}
    rule |= {"resourcePatternType": LITERAL}
    rules = [
        {**rule, "operation": ALL, "permissionType": ALLOW},
        {**rule, "operation": ALTER_CONFIGS, "permissionType": DENY},
    ]
    results = ask(connection, CREATE_ACLS, 1, {"creations": rules})["results"]
    assert [each["errorCode"] for each in results] == [NONE, NONE]
    any_rule = {"resourceTypeFilter": CLUSTER, "resourceNameFilter": None, "patternTypeFilter": 1}
    any_rule |= {"principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": ANY}
    known = ask(connection, DESCRIBE_ACLS, 1, any_rule)["resources"]
    assert [len(each["acls"]) for each in known] == [len(rules)]


@pytest.mark.parametrize(
    ("mutants", "told", "verdict"),
    [
        ((), CLUSTER_AUTHORIZATION_FAILED, Verdict.PASS),
        (("--mutants", "allow_before_deny"), NONE, Verdict.FAIL),
    ],
    ids=["honest", "allow_before_deny"],
)
def test_a_direct_write_is_judged_by_the_acls_that_its_broker_knew(
    start_cluster: StartCluster,
    tmp_path: Path,
    mutants: tuple[str, ...],
    told: int,
    verdict: Verdict,
) -> None:
    """A denial holds, or its breach is found: the seeded bug asks for permissions first."""
    command = (*MUTANT_NODE[:2], *mutants) if mutants else ()
    cluster = start_cluster(
        brokers=1, data_dir=tmp_path, properties={**OLD, **SECURED}, node_command=command
    )
    connection = Connection(cluster.bootstrap_server(1))
    assert set_quota(connection, "anna", 1) == NONE, "nothing is forbidden yet"
    make_rules(connection)
    assert set_quota(connection, "berta", 1) == told
    connection.close()
    cluster.stop()
    found = {each.property.id: each for each in judge(History(read_run(tmp_path)), PROPERTIES)}
    assert found["A1"].verdict is verdict
    assert found["A1"].judged == (3 if mutants else 2)
    assert found["F1"].verdict is Verdict.PASS
    assert found["W6"].verdict is Verdict.PASS
    keys = [violation.key.partition("/")[2] for violation in found["A1"].violations]
    assert keys == (["0:user=berta"] if mutants else [])
