"""The judge checks the rights (property A1) of direct writes.

Only brokers with an `inter.broker.protocol.version` below 3.4 make direct writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bridgehead.raw_client.blocking import Connection
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge
from tests.integration.conftest import StartCluster
from tests.integration.test_upgrade import MUTANT_NODE, OLD, set_quota

CREATE_ACLS, DESCRIBE_ACLS = 30, 29
CLUSTER, LITERAL, ANY = 4, 3, 1
ALTER_CONFIGS, ALL, ALLOW, DENY = 11, 2, 3, 2
NONE, CLUSTER_AUTHORIZATION_FAILED = 0, 31
USER: Final = "User:ANONYMOUS"
SECURED: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:broker",
}


def make_rules(connection: Connection) -> None:
    """Allow ALL, deny ALTER_CONFIGS, and check that the broker has applied the two ACLs."""
    rule = {"resourceType": CLUSTER, "resourceName": "kafka-cluster", "principal": USER}
    rule |= {"resourcePatternType": LITERAL, "host": "*"}
    rules = [
        {**rule, "operation": ALL, "permissionType": ALLOW},
        {**rule, "operation": ALTER_CONFIGS, "permissionType": DENY},
    ]
    results = connection.call(CREATE_ACLS, 1, {"creations": rules})["results"]
    assert [result["errorCode"] for result in results] == [NONE, NONE]
    any_rule = {"resourceTypeFilter": CLUSTER, "resourceNameFilter": None, "patternTypeFilter": 1}
    any_rule |= {"principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": ANY}
    resources = connection.call(DESCRIBE_ACLS, 1, any_rule)["resources"]
    assert [len(resource["acls"]) for resource in resources] == [len(rules)]


@pytest.mark.parametrize(
    ("mutants", "error", "verdict"),
    [
        ((), CLUSTER_AUTHORIZATION_FAILED, Verdict.PASS),
        (("allow_before_deny",), NONE, Verdict.FAIL),
    ],
    ids=["no mutant", "allow_before_deny"],
)
def test_direct_write_is_judged_by_the_acls_of_its_broker(
    start_cluster: StartCluster,
    tmp_path: Path,
    mutants: tuple[str, ...],
    error: int,
    verdict: Verdict,
) -> None:
    """The seeded bug checks ALLOW before DENY. Property A1 (no_unauthorized_effect) detects it."""
    command = (*MUTANT_NODE, *mutants) if mutants else ()
    cluster = start_cluster(
        brokers=1, data_dir=tmp_path, properties={**OLD, **SECURED}, node_command=command
    )
    connection = Connection(cluster.bootstrap_server(1))
    assert set_quota(connection, "anna", 1) == NONE, "a write failed before any ACL existed"
    make_rules(connection)
    assert set_quota(connection, "berta", 1) == error
    connection.close()
    cluster.stop()
    judgements = {
        judgement.row.property: judgement for judgement in judge(History(read_run(tmp_path)))
    }
    assert judgements["A1"].row.verdict is verdict
    assert judgements["A1"].row.judged == (3 if mutants else 2)
    assert judgements["F1"].row.verdict is Verdict.PASS
    assert judgements["W6"].row.verdict is Verdict.PASS
    keys = [violation.key.partition("/")[2] for violation in judgements["A1"].violations]
    assert keys == (["0:user=berta"] if mutants else [])
