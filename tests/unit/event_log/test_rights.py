"""The judges' table of rights agrees with the table of all APIs."""

from __future__ import annotations

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, Route
from cluster_model.direct_writes import TOKEN_WRITES
from event_log.rights import RIGHTS, WITHOUT_ACLS


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
