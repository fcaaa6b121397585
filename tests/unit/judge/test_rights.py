"""The judges' own table of rights agrees with the brokers' table of APIs."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, DRAFTED_SPECS, ApiSpec, Route
from cluster_model.direct_writes import TOKEN_WRITES
from judge.reference_authorizer import Access, AclHistory
from judge.rights import RIGHTS, WITHOUT_ACLS, required_rights

TYPES = {"Config": ["CLUSTER", "TOPIC"], "Cluster": ["CLUSTER"], "Topic": ["TOPIC"]}


def _is_write(spec: ApiSpec) -> bool:
    return spec.route in (Route.FORWARD, Route.ON_CONTROLLER)


def test_judges_have_the_rights_of_every_forwarded_write() -> None:
    specs = [*API_SPECS.values(), *DRAFTED_SPECS.values()]
    forwarded = {spec.key: spec for spec in specs if _is_write(spec)}
    del forwarded[ApiKey.LIST_PARTITION_REASSIGNMENTS]  # It writes nothing.
    assert {int(key) for key in forwarded} == RIGHTS.keys() | set(WITHOUT_ACLS)
    del forwarded[ApiKey.ALTER_ACLS]  # It requires every operation on the cluster, not just Alter.
    for key, spec in forwarded.items():
        expected = {
            (re.sub("(?<!^)(?=[A-Z])", "_", operation).upper(), type_)
            for operation, resource in RIGHTS.get(int(key), ())
            for type_ in TYPES[resource]
        }
        if int(key) not in WITHOUT_ACLS:
            assert {tuple(str(part) for part in right) for right in spec.rights} == expected, key


def test_rights_depend_on_the_element() -> None:
    assert required_rights(37, "orders") == (("Alter", "Topic", "orders"),)
    assert required_rights(37, "id:AAAA") is None
    assert required_rights(44, "2:orders") == (("AlterConfigs", "Topic", "orders"),)
    assert required_rights(44, "4:1") == (("AlterConfigs", "Cluster", "kafka-cluster"),)
    assert required_rights(38, "token") is None
    assert required_rights(99, "orders") == ()


@pytest.mark.parametrize("entry", ['"x"', "7", "null", "[]"])
def test_an_acl_that_is_not_an_object_grants_nothing(entry: str) -> None:
    """Such an entry was written by hand. The other entries of its znode still apply."""
    access = Access("User:a", "h", "Read", "Topic", "t")
    good = {"principal": "User:a", "host": "*", "operation": "Read", "permissionType": "Allow"}
    for acls, allowed in ((entry, False), (f"{entry},{json.dumps(good)}", True)):
        line = SimpleNamespace(data=f'{{"version":1,"acls":[{acls}]}}')
        history: Any = SimpleNamespace(
            run=SimpleNamespace(allow_if_no_acl=True),
            evidence=SimpleNamespace(first={"/kafka-acl/Topic/t": line}),
            applied=[],
        )
        assert AclHistory(history).allows(access, zxid=1) == allowed


def as_judged(rights: tuple[tuple[str, str], ...]) -> set[tuple[str, str]]:
    """Spell rights like the judges' table. Where the code requires ALL, the judges check ALTER."""
    if rights == (("ALTER_CONFIGS", "CLUSTER"), ("ALTER_CONFIGS", "TOPIC")):
        return {("AlterConfigs", "Config")}
    spelled = {("ALTER" if op == "ALL" else op, kind) for op, kind in rights}
    return {(op.title().replace("_", ""), kind.title()) for op, kind in spelled}


def test_rights_of_both_tables_are_equal() -> None:
    judged = {
        spec.key: as_judged(spec.rights)
        for spec in DRAFTED_SPECS.values()
        if spec.route in (Route.FORWARD, Route.ON_CONTROLLER) and spec.key not in WITHOUT_ACLS
    }
    del judged[ApiKey.LIST_PARTITION_REASSIGNMENTS]  # It writes nothing.
    assert {key: set(rights) for key, rights in RIGHTS.items()} == judged


def test_only_writes_of_delegation_tokens_need_no_acls() -> None:
    assert set(WITHOUT_ACLS) == TOKEN_WRITES
