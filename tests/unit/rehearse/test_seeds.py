"""Each seeded inconsistency is named by the scan; a healthy cluster has no finding."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cluster_model.znodes.access import ZnodeAcl
from rehearse.checks import scan
from rehearse.cluster import Cluster, ServerProperties
from rehearse.findings import Outcome
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.sources.dump import read_dump, read_key, write_dump
from rehearse.znodes import Znode, ZnodeTree, is_in_layout

RECORDINGS = Path(__file__).parents[2] / "recordings"
# Of a cluster that is prepared for the migration in every way.
BROKER = ServerProperties(
    "broker.properties",
    {
        "broker.id": "2",
        "zookeeper.connect": "127.0.0.1:2181/kafka",
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": "3000@127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.protocol.version": "3.9",
    },
)
CONTROLLER = ServerProperties(
    "controller.properties",
    {
        "process.roles": "controller",
        "node.id": "3000",
        "zookeeper.connect": "127.0.0.1:2181/kafka",
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": "3000@127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "delegation.token.secret.key": "a key",
        "password.encoder.secret": "a secret",
    },
)


def rules_of(tree: ZnodeTree, *files: ServerProperties) -> list[str]:
    """Return the rules that find something, each once."""
    findings = scan(Cluster(tree, files or (BROKER, CONTROLLER)))
    return list(dict.fromkeys(finding.rule.id for finding in findings))


def test_healthy_cluster_has_no_finding() -> None:
    assert rules_of(healthy()) == []


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_seed_is_named_by_its_rule_alone(seed: Seed) -> None:
    assert rules_of(seed.planted(healthy())) == [seed.rule]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_seed_is_named_in_a_sealed_dump(seed: Seed, tmp_path: Path) -> None:
    key = read_key(tmp_path / "key", create=True)
    write_dump(seed.planted(healthy()), tmp_path / "dump", key)
    assert rules_of(read_dump(tmp_path / "dump", key)) == [seed.rule]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_dump_without_secrets_hides_only_seeds_in_secrets(seed: Seed, tmp_path: Path) -> None:
    write_dump(seed.planted(healthy()), tmp_path / "dump")
    secret = seed.name.startswith(("scram", "token", "config_unreadable"))
    assert rules_of(read_dump(tmp_path / "dump")) == ([] if secret else [seed.rule])


def test_seeds_have_different_names_and_every_outcome() -> None:
    assert len({seed.name for seed in SEEDS}) == len(SEEDS)
    assert {seed.outcome_in("3.9.1") for seed in SEEDS} == set(Outcome)


def test_items_are_named_exactly_if_the_migration_ends() -> None:
    """Nothing can be compared if it does not end. Some znodes are no item in KRaft."""
    without_items = {"reassignment_plan", "config_type_unknown", "acl_unreadable"}
    for seed in SEEDS:
        ends = seed.outcome_in("3.9.1") not in (Outcome.DIES, Outcome.WAITS, Outcome.STUCK)
        assert bool(seed.items) == (ends and seed.name not in without_items), seed.name


def test_one_seed_has_another_outcome_in_the_next_release() -> None:
    changed = {seed.name for seed in SEEDS if seed.outcome_in("3.9.1") != seed.outcome_in("3.9.2")}
    assert changed == {"migration_empty"}


def recorded_tree(name: str) -> ZnodeTree:
    """Return the znodes that a live Kafka 3.9.1 wrote."""
    with gzip.open(RECORDINGS / f"znodes-{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return ZnodeTree(
        {
            row["path"]: Znode(
                None if row["data"] is None else row["data"].encode(),
                row["version"],
                ephemeral=row["ephemeral"],
                acls=tuple(ZnodeAcl(*acl) for acl in row["acl"]),
            )
            for row in rows
            if is_in_layout(row["path"])
        }
    )


@pytest.mark.parametrize("name", ["direct-secured", "forwarded-secured"])
def test_tree_of_a_live_kafka_has_no_finding(name: str) -> None:
    tree = recorded_tree(name)
    assert len(tree.znodes) > 200
    assert rules_of(tree) == []


@pytest.mark.parametrize("name", ["direct-open", "forwarded-open"])
def test_only_impossible_topics_of_a_live_kafka_are_found(name: str) -> None:
    """Old versions of CreateTopics let Kafka store assignments to no broker or to a missing one."""
    findings = scan(Cluster(recorded_tree(name), (BROKER, CONTROLLER)))
    places = {(finding.rule.id, finding.place.where.rpartition("-")[2]) for finding in findings}
    assert places == {
        ("replica-on-absent-broker", "neg"),
        ("replica-on-absent-broker", "nobroker"),
        ("assignment-empty", "emptyrep"),
        ("state-missing", "neg"),
        ("state-missing", "nobroker"),
    }
