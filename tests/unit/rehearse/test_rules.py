"""Each rule of the scan is found where it applies, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from cluster_model.znodes.access import ZnodeAcl
from rehearse.checks import RULES, THEMES, scan
from rehearse.cluster import Cluster, ServerProperties
from rehearse.findings import Evidence, Outcome, Severity
from rehearse.seeds import SEEDS, TOKEN, Seed, healthy
from rehearse.znodes import Hidden, Znode, ZnodeTree
from tests.unit.rehearse.test_seeds import BROKER, CONTROLLER

DATA = Path(__file__).parents[2] / "data"
LOGS = {rule.id: rule.log for rule in RULES}
MIGRATION = "/migration"
TOKEN_PATH = f"/delegation_token/tokens/{TOKEN}"


def file_with(file: ServerProperties, **changes: str | None) -> ServerProperties:
    """Return a file with changes; names have underscores for dots, None deletes."""
    values = {**file.values, **{name.replace("_", "."): v for name, v in changes.items()}}
    return ServerProperties(file.file, {k: v for k, v in values.items() if v is not None})


@dataclass(frozen=True)
class Row:
    """A difference from a healthy cluster, and the one rule that names it."""

    rule: str
    put: Mapping[str, bytes | None] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    files: tuple[ServerProperties, ...] = (BROKER, CONTROLLER)
    znodes: Mapping[str, Znode] = field(default_factory=dict)
    detail: str | None = None

    def cluster(self) -> Cluster:
        tree = Seed("", "", self.rule, self.put, self.gone).planted(healthy())
        return Cluster(ZnodeTree({**tree.znodes, **self.znodes}), self.files)


def document(**fields: Any) -> bytes:
    return orjson.dumps(fields)


def configs(**values: Any) -> bytes:
    return document(version=1, config=values)


def topic(**changes: Any) -> bytes:
    content = orjson.loads(healthy().data("/brokers/topics/audit") or b"")
    return orjson.dumps({**content, **changes})


def state(**changes: Any) -> bytes:
    content = orjson.loads(healthy().data("/brokers/topics/audit/partitions/0/state") or b"")
    return orjson.dumps({**content, **changes})


def token(**changes: Any) -> bytes:
    return orjson.dumps({**orjson.loads(healthy().data(TOKEN_PATH) or b""), **changes})


def acl(**changes: Any) -> bytes:
    entry = {"principal": "User:eve", "host": "*", "operation": "Read", "permissionType": "Allow"}
    return document(version=1, acls=[{**entry, **changes}])


AUDIT, STATE = "/brokers/topics/audit", "/brokers/topics/audit/partitions/0/state"
LEFT = {"version": 0, "kraft_controller_id": 1, "kraft_controller_epoch": 1}
LEFT |= {"kraft_metadata_epoch": 1, "kraft_metadata_offset": 9}
KAFKA_ALONE = (ZnodeAcl(31, "sasl", "kafka"),)
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"

ROWS = (
    Row("topic-unreadable", {AUDIT: b""}, detail="it is not a JSON object"),
    Row("topic-unreadable", {AUDIT: b"[]"}),
    Row("topic-unreadable", {AUDIT: topic(topic_id="short")}, detail="its topic id is not a UUID"),
    Row("topic-unreadable", {AUDIT: topic(topic_id=None)}),
    Row("topic-unreadable", {AUDIT: topic(partitions={"x": [1]})}),
    Row("topic-unreadable", {AUDIT: topic(partitions={"0": ["1"], "1": [2]})}),
    Row("topic-unreadable", {AUDIT: topic(partitions={"0": [1.0], "1": [2]})}),
    Row("topic-unreadable", {AUDIT: topic(partitions={"0": [True], "1": [2]})}),
    Row("topic-unreadable", {AUDIT: topic(partitions={"0": [2**31], "1": [2]})}),
    Row("topic-unreadable", {AUDIT: topic(adding_replicas=[])}),
    Row("topic-unreadable", {AUDIT: topic(partitions=[[1]])}),
    Row("state-missing", {STATE: b"{"}, detail="partition 0"),
    Row("state-unreadable", {STATE: None}, detail="it has no data"),
    Row("state-unreadable", {STATE: state(leader="1")}),
    Row("state-unreadable", {STATE: state(isr=[None])}),
    Row("state-unreadable", {STATE: state(leader_recovery_state=7)}),
    Row("state-of-no-partition", {f"{AUDIT}/partitions/01/state": state()}),
    Row("leader-odd", {STATE: state(leader=-1)}),
    Row("leader-odd", {STATE: state(isr=[])}),
    Row("leader-odd", {STATE: state(leader=2, isr=[1, 3])}),
    Row("leader-epoch-high", {STATE: state(leader_epoch=2**31 - 3)}),
    Row("election-plan", {"/admin/preferred_replica_election": document(version=1, partitions=[])}),
    Row(
        "topic-name-odd",
        {"/brokers/topics/bad name!": document(partitions={}, topic_id="AAAAAAAAAAAAAAAAAAAAAw")},
    ),
    Row(
        "topic-names-collide",
        {
            "/brokers/topics/a.b": document(partitions={}, topic_id="AAAAAAAAAAAAAAAAAAAAAw"),
            "/brokers/topics/a_b": document(partitions={}, topic_id="AAAAAAAAAAAAAAAAAAAABw"),
        },
        detail="a.b, a_b collide",
    ),
    Row("config-not-a-string", {"/config/brokers/2": configs(x=None)}),
    Row("config-not-a-string", {"/config/clients/batch": configs(producer_byte_rate=5)}),
    Row("config-of-no-topic-odd", {"/config/topics/<default>": configs()}),
    Row("config-unreadable", {"/config/users/alice": b"{"}),
    Row("config-unreadable", {"/config/brokers/2": b"[]"}),
    Row("topic-config-invalid", {"/config/topics/audit": configs(**{"retention.ms": "abc"})}),
    Row(
        "broker-config-of-absent-broker",
        {"/config/brokers/7": configs(**{"log.cleaner.threads": "2"})},
    ),
    Row("broker-config-invalid", {"/config/brokers/2": configs(**{"log.retention.ms": "soon"})}),
    Row(
        "broker-defaults",
        {"/config/brokers/<default>": configs(**{"log.retention.ms": "3600000"})},
    ),
    Row(
        "password-without-secret",
        {"/config/brokers/2": configs(**{"ssl.key.password": "encoded"})},
        files=(BROKER, file_with(CONTROLLER, password_encoder_secret=None)),
        detail="ssl.key.password",
    ),
    Row(
        "password-of-another-secret",
        {"/config/brokers/2": configs(**{"listener.name.x.ssl.key.password": "encoded"})},
    ),
    Row("quota-not-a-number", {"/config/users/alice/clients/c": configs(producer_byte_rate="")}),
    Row("quota-not-a-number", {"/config/users/alice/clients/c": configs(**{"SCRAM-SHA-256": "x"})}),
    Row("quota-unknown", {"/config/ips/10.1.2.3": configs(producer_byte_rate="5")}),
    Row("quota-unknown", {"/config/users/alice/clients/c": configs(speed="5")}),
    Row("quota-fraction", {"/config/ips/10.1.2.3": configs(connection_creation_rate="1e10")}),
    Row("quota-fraction", {"/config/users/alice": configs(consumer_byte_rate="Infinity")}),
    Row("entity-name-escape", {"/config/users/alice/clients/50%": configs()}),
    Row("entity-name-escape", {"/config/clients/%4": configs()}),
    Row("entity-name-unescaped", {"/config/clients/a+b": configs()}),
    Row("scram-unreadable", {"/config/users/u": configs(**{"SCRAM-SHA-512": "salt=YQ==,x=1"})}),
    Row("scram-misplaced", {"/config/users/<default>": healthy().data("/config/users/alice")}),
    Row("entity-children", {"/config/users/alice/groups": None}),
    Row("entity-children", {"/config/clients/batch/users/x": configs()}),
    Row("ip-odd", {"/config/ips/not-an-ip": configs(connection_creation_rate="5")}),
    Row("acl-unreadable", {"/kafka-acl/Topic/t": None}, detail="it has no data"),
    Row("acl-unreadable", {"/kafka-acl/Topic/t": document(version=1, acls=[])}),
    Row("acl-odd", {"/kafka-acl/Topic/t": b"[]"}),
    Row("acl-odd", {"/kafka-acl/Topic/t": acl(host=None)}),
    Row("acl-odd", {"/kafka-acl/Topic/t": acl(operation="Any")}),
    Row("acl-odd", {"/kafka-acl-extended/prefixed/Topic/t": document(version=1)}),
    Row("acl-word-unknown", {"/kafka-acl/Topic/t": acl(permissionType="Maybe")}),
    Row("acl-type-unknown", {"/kafka-acl/TOPIC/t": acl()}),
    Row("acl-pattern-unknown", {"/kafka-acl-extended/suffixed/Topic": None}),
    Row("controller-epoch", {"/controller_epoch": b"x"}, detail="it is not a number"),
    Row("controller-epoch", {"/controller_epoch": b"2147483647"}, detail="it has no successor"),
    Row("controller-unreadable", {"/controller": b"{"}),
    Row("controller-unreadable", {"/controller": document(brokerid="1")}),
    Row("migration-unreadable", {MIGRATION: b""}),
    Row("migration-unreadable", {MIGRATION: document(**{**LEFT, "version": 1})}),
    Row("migration-unreadable", {MIGRATION: document(version=0)}),
    Row("migration-leftover", {MIGRATION: orjson.dumps(LEFT)}, detail="offset 9, KRaft epoch 1"),
    Row(
        "epoch-behind-states",
        {STATE: state(controller_epoch=8)},
        detail="1 states; the highest epoch is 8, not 7",
    ),
    Row("broker-id-odd", {"/brokers/ids/abc": b"{}"}),
    Row("broker-listeners-differ", {"/brokers/ids/3": document(endpoints=["A://h:1"])}),
    Row("producer-ids-unreadable", {"/latest_producer_id_block": document(broker=1)}),
    Row("producer-ids-lost", gone=("/latest_producer_id_block",)),
    Row("producer-ids-lost", {"/latest_producer_id_block": None}, detail="it had data before"),
    Row("token-odd", {TOKEN_PATH: token(owner="alice")}),
    Row("token-odd", {TOKEN_PATH: token(maxTimestamp="1")}),
    Row("token-unreadable", {TOKEN_PATH: None}),
    Row("token-renamed", {"/delegation_token/tokens/other": token()}),
    Row(
        "tokens-without-key",
        files=(BROKER, file_with(CONTROLLER, delegation_token_secret_key=None)),
        detail="1 tokens",
    ),
    Row("cluster-id", gone=("/cluster/id",)),
    Row("cluster-id", {"/cluster/id": b"{"}),
    Row("access-denied", znodes={AUDIT: Znode(hidden=Hidden.NO_AUTH)}),
    Row(
        "access-restricted",
        znodes={"/feature": Znode(b"{}", acls=KAFKA_ALONE)},
        detail="1 znodes with an ACL of sasl:kafka",
    ),
    Row("znode-large", {"/kafka-acl/Topic/t": acl(host="h" * 900_000)}),
    Row("children-large", {f"/config/changes/{n:0>9999}": None for n in range(336)}),
)
IBP = "inter_broker_protocol_version"
WITH_X = {"listeners": "PLAINTEXT://127.0.0.1:9092,X://127.0.0.1:9094"}
WITH_X["listener_security_protocol_map"] = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,X:PLAINTEXT"
POLICY = "org.example.Policy"
OTHER = ServerProperties("other.properties", {**BROKER.values, "broker.id": "3"})
FILE_ROWS = (
    Row("file-generated-id", files=(file_with(BROKER, broker_id="-1"), CONTROLLER)),
    Row("file-generated-id", files=(file_with(BROKER, broker_id=None), CONTROLLER)),
    Row("file-level-low", files=(file_with(BROKER, **{IBP: "3.3"}), CONTROLLER)),
    Row("file-level-of-old-controllers", files=(file_with(BROKER, **{IBP: "3.5"}), CONTROLLER)),
    Row("file-level-unknown", files=(file_with(BROKER, **{IBP: "9.9"}), CONTROLLER)),
    Row("file-levels-differ", files=(file_with(BROKER, **{IBP: "3.8"}), OTHER, CONTROLLER)),
    Row("file-log-dirs", files=(file_with(BROKER, log_dirs="/a,/b", **{IBP: "3.6"}), CONTROLLER)),
    Row("file-broker-voters", files=(file_with(BROKER, controller_quorum_voters=""), CONTROLLER)),
    Row(
        "file-broker-listener-names",
        files=(file_with(BROKER, controller_listener_names=None), CONTROLLER),
    ),
    Row(
        "file-broker-early",
        files=(file_with(BROKER, zookeeper_metadata_migration_enable="false"), CONTROLLER),
    ),
    Row(
        "file-controller-listener-map",
        files=(file_with(BROKER, listener_security_protocol_map=None), CONTROLLER),
        detail="CONTROLLER",
    ),
    Row(
        "file-listener-map",
        files=(
            file_with(BROKER, inter_broker_listener_name="X", **WITH_X),
            file_with(CONTROLLER, inter_broker_listener_name="X"),
        ),
        detail="X",
    ),
    Row(
        "file-broker-flag",
        files=(
            file_with(
                BROKER, zookeeper_metadata_migration_enable=None, controller_listener_names=None
            ),
            CONTROLLER,
        ),
    ),
    Row(
        "file-controller-flag",
        files=(BROKER, file_with(CONTROLLER, zookeeper_metadata_migration_enable=None)),
    ),
    Row("file-controller-zookeeper", files=(BROKER, file_with(CONTROLLER, zookeeper_connect=None))),
    Row("file-chroot", files=(BROKER, file_with(CONTROLLER, zookeeper_connect="127.0.0.1:2181"))),
    Row(
        "file-listener",
        files=(file_with(BROKER, inter_broker_listener_name="X", **WITH_X), CONTROLLER),
        detail="PLAINTEXT, but X in broker.properties",
    ),
    Row(
        "file-listener-missing",
        {
            f"/brokers/ids/{broker_id}": document(endpoints=endpoints)
            for broker_id, endpoints in (
                (1, ["PLAINTEXT://h:1", "X://h:2"]),
                (2, ["PLAINTEXT://h:1", "X://h:2"]),
                (3, ["X://h:2"]),
            )
        },
        detail="it has X, not PLAINTEXT of controller.properties",
    ),
    Row(
        "file-ids-shared",
        files=(file_with(BROKER, controller_quorum_voters="2@127.0.0.1:9093"), CONTROLLER),
        detail="2 is a controller",
    ),
    Row(
        "file-scram-controllers",
        files=(BROKER, file_with(CONTROLLER, sasl_mechanism_controller_protocol="SCRAM-SHA-512")),
    ),
    Row(
        "file-authorizer-of-kraft",
        files=(BROKER, file_with(CONTROLLER, authorizer_class_name=ACL_AUTHORIZER)),
    ),
    Row(
        "file-authorizer-to-change",
        files=(
            file_with(BROKER, authorizer_class_name=ACL_AUTHORIZER),
            file_with(CONTROLLER, authorizer_class_name=STANDARD, super_users="User:ANONYMOUS"),
        ),
    ),
    Row(
        "file-authorizer-own",
        files=(BROKER, file_with(CONTROLLER, authorizer_class_name="org.example.Authorizer")),
        detail="org.example.Authorizer",
    ),
    Row(
        "file-authorizer-missing",
        files=(file_with(BROKER, authorizer_class_name="org.example.Authorizer"), CONTROLLER),
    ),
    Row(
        "file-super-users",
        files=(BROKER, file_with(CONTROLLER, authorizer_class_name=STANDARD)),
    ),
    Row(
        "file-control-plane",
        files=(file_with(BROKER, control_plane_listener_name="X", **WITH_X), CONTROLLER),
    ),
    Row(
        "file-policy",
        files=(file_with(BROKER, create_topic_policy_class_name=POLICY), CONTROLLER),
    ),
)
# What a difference brings along besides its own rule.
BESIDES = {
    "broker-listeners-differ": {"file-listener-missing", "broker-stale"},
    "file-broker-early": {"file-broker-flag"},
    "file-authorizer-missing": {"file-authorizer-own"},
    "file-listener-map": {"file-listener-missing"},
    "file-listener-missing": {"broker-stale"},
}


@pytest.mark.parametrize("row", [*ROWS, *FILE_ROWS], ids=lambda row: row.rule)
def test_rule_is_found(row: Row) -> None:
    findings = scan(row.cluster())
    rules = {finding.rule.id for finding in findings}
    assert row.rule in rules
    assert rules - {row.rule} <= BESIDES.get(row.rule, set())
    if row.detail is not None:
        assert row.detail in [f.place.detail for f in findings if f.rule.id == row.rule]


def test_kafka_starts_with_the_same_files() -> None:
    """`tests/data/migration_properties.jsonl` has what Kafka's KafkaConfig says of each file."""
    lines = (DATA / "migration_properties.jsonl").read_text().splitlines()
    errors = {
        json.dumps(row["values"], sort_keys=True): row["error"] for row in map(json.loads, lines)
    }
    rejected = {}
    for row in FILE_ROWS:
        for file in row.files:
            error = errors[json.dumps(dict(file.values), sort_keys=True)]
            if error is not None and POLICY not in error:
                assert LOGS[row.rule] in error
                rejected[row.rule] = error
    assert sorted(rejected) == [
        "file-broker-early",
        "file-broker-listener-names",
        "file-broker-voters",
        "file-controller-zookeeper",
        "file-generated-id",
        "file-level-low",
        "file-level-unknown",
        "file-listener-map",
        "file-log-dirs",
    ]
    # The others end later: at the broker's first request, or in a controller of another level.
    dies = {
        rule.id for rule in RULES if rule.id.startswith("file-") and rule.outcome is Outcome.DIES
    }
    assert sorted(dies - set(rejected)) == [
        "file-authorizer-of-kraft",
        "file-controller-listener-map",
        "file-ids-shared",
        "file-level-of-old-controllers",
    ]


def test_every_rule_has_a_seed_or_a_row() -> None:
    named = {seed.rule for seed in SEEDS} | {row.rule for row in (*ROWS, *FILE_ROWS)}
    assert named == {rule.id for rule in RULES}
    assert len(RULES) == len({rule.id for rule in RULES}) == sum(map(len, THEMES.values()))


GOOD = (
    {
        AUDIT: topic(partitions={"0": [1], "5": [2]}),
        f"{AUDIT}/partitions/5/state": state(leader=2, isr=[2]),
        STATE: state(leader=1, isr=[1]),
    },
    {AUDIT: topic() + b" and more"},
    {AUDIT: topic(version=17, added="later")},
    {"/config/topics/audit": document(version=2, config={})},
    {"/config/topics/audit": None},
    {"/config/topics/audit": b""},
    {"/config/users/alice": b"{}"},
    {"/config/topics/vanished": configs()},
    {"/config/topics/vanished": b"{"},
    {"/config/users/alice": b"null"},
    {"/config/topics/audit": document(version=1, config={"message.format.version": "2.1"})},
    {"/config/users/alice": configs(request_percentage="1e2", producer_byte_rate=" 5 ")},
    {"/config/users/alice": configs(producer_byte_rate="9223372036854775807")},
    {"/config/clients/%C3%A4%20%2F": configs(producer_byte_rate="5")},
    {"/config/ips/%3A%3A1": configs(connection_creation_rate="5")},
    {"/kafka-acl/Topic/t": acl(operation="READ", permissionType="ALLOW", principal=":")},
    {"/controller_epoch": b"+7"},
    {MIGRATION: orjson.dumps({**LEFT, "kraft_metadata_offset": -1})},
    {"/controller": document(version=1, brokerid=1)},
    {"/feature": b"{"},
    {"/isr_change_notification/isr_change_1": b"old"},
    {"/admin/delete_topics": b"x"},
)


@pytest.mark.parametrize("put", GOOD, ids=lambda put: next(iter(put)))
def test_what_kafka_takes_as_it_is_has_no_finding(put: Mapping[str, bytes | None]) -> None:
    row = Row("", {**put}, gone=(f"{AUDIT}/partitions/1",) if "/partitions/5" in str(put) else ())
    assert [finding.rule.id for finding in scan(row.cluster())] == []


def test_queued_topic_is_not_read() -> None:
    """Kafka does not read it, so that nothing else is wrong with it."""
    row = Row("", {AUDIT: b"{", "/admin/delete_topics/audit": None})
    assert [finding.rule.id for finding in scan(row.cluster())] == ["deletion-queued"]


def test_files_are_not_needed() -> None:
    """Without files, only what needs a controller's secret cannot be told."""
    findings = scan(Cluster(healthy()))
    assert [finding.rule.id for finding in findings] == ["tokens-without-key"]


def test_severity_follows_from_the_outcome_unless_the_rule_only_warns() -> None:
    for rule in RULES:
        blocks = rule.outcome in (Outcome.DIES, Outcome.WAITS, Outcome.STUCK)
        assert (rule.severity_in("3.9.1") is Severity.BLOCKS) == (blocks and not rule.warns_only)
    assert [rule.id for rule in RULES if rule.warns_only] == [
        "election-plan",
        "children-large",
        "file-broker-flag",
        "file-policy",
    ]


def test_rules_say_what_to_do_and_most_were_seen_live() -> None:
    for rule in RULES:
        assert rule.remedy.endswith("."), rule.id
        assert rule.effect.endswith("."), rule.id
        assert rule.what.endswith("."), rule.id
    from_source = {rule.id for rule in RULES if rule.evidence is Evidence.SOURCE}
    assert len(RULES) - len(from_source) > 55
    assert from_source.isdisjoint(seed.rule for seed in SEEDS), "make rehearse-all plays them"


def test_places_are_bounded_by_what_they_name() -> None:
    """One absent broker in a thousand topics is one finding."""
    znodes = dict(healthy().znodes)
    for number in range(1000):
        content = topic(partitions={"0": [9]}, topic_id=f"AAAAAAAAAAAAAAAAAA{number:04}"[:22])
        znodes[f"/brokers/topics/t{number}"] = Znode(content)
        znodes[f"/brokers/topics/t{number}/partitions/0/state"] = Znode(state(leader=9, isr=[9]))
    findings = scan(Cluster(ZnodeTree(znodes), (BROKER, CONTROLLER)))
    absent = [f for f in findings if f.rule.id == "replica-on-absent-broker"]
    assert len(absent) == 1
    assert absent[0].place.detail.startswith("broker 9 has replicas of t0, t1, t10, t100, t101 and")
    assert replace(absent[0]).remedy.startswith("Start the broker")
