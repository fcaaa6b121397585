"""A healthy tree of znodes, and seeded inconsistencies: each is one difference from it.

`scan` must name each seed's rule. `make rehearse-all` gives each seed to a real controller, and
compares what happens with the outcome of this rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cluster_model.znodes.access import OPEN
from cluster_model.znodes.layout import START_UP_PATHS
from rehearse.checks import RULES
from rehearse.findings import Outcome, Rule
from rehearse.znodes import Znode, ZnodeTree, is_in_layout

CLUSTER_ID: Final = "u3aX0wQ7T1ebcP5xY2mJZg"
BROKERS: Final = (1, 2, 3)
# Of a password that is in no use.
_SCRAM: Final = (
    "salt=MTBhdmVwZXBwZXJz,stored_key=4pWb1nZ8dZ0g0m5b2q7d6X9m3vK1hY8sT5uR2wQ7e0A=,"
    "server_key=Wq3eR5tY7uI9oP1aS3dF5gH7jK9lZ1xC3vB5nM7qW9E=,iterations=8192"
)
_TOPIC_IDS: Final = {
    "orders": "qf3oXkCLQ1yXwLr1zvO5uQ",
    "payments": "Zt0T6Zb3RqS9lJYv4mWJ8g",
    "audit": "h1L7c2n4S9-0Vbq5XrTz_A",
}
TOKEN: Final = "Yk9QmT3sQ5aJ7uVx2nB4dw"  # noqa: S105 - an id, which is no secret
_RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class Seed:
    """A seeded inconsistency.

    `gone` has the znodes that are deleted first, with all below them, and `put` those that are then
    written; missing parents are created. `rule` names it in a scan. `items` are changed, lost,
    deleted or kept, as `rehearse.metadata` names them; none if the migration does not end.
    """

    name: str
    what: str
    rule: str
    put: Mapping[str, bytes | None] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    items: tuple[str, ...] = ()

    def outcome_in(self, kafka: str) -> Outcome:
        """Return what this version of Kafka does."""
        return _RULES[self.rule].outcome_in(kafka)

    @property
    def log(self) -> str:
        """A part of a line in the controller's log; empty if it says nothing."""
        return _RULES[self.rule].log

    def planted(self, tree: ZnodeTree) -> ZnodeTree:
        """Return a tree with this seed."""
        znodes = {
            path: znode
            for path, znode in tree.znodes.items()
            if not any(path == gone or path.startswith(f"{gone}/") for gone in self.gone)
        }
        for path, data in self.put.items():
            for parent in _parents(path):
                znodes.setdefault(parent, Znode(acls=OPEN))
            version = znodes[path].version + 1 if path in znodes else 0
            znodes[path] = Znode(data, version, acls=OPEN)
        return ZnodeTree(znodes, tree.zxid)


def _parents(path: str) -> list[str]:
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]


def healthy() -> ZnodeTree:
    """Return the tree of a cluster of three brokers, without any inconsistency."""
    znodes: dict[str, Znode] = {}
    contents: dict[str, bytes | None] = dict.fromkeys(filter(is_in_layout, START_UP_PATHS))
    contents |= _topics() | _configs() | _acls()
    contents |= {
        "/cluster/id": _json({"version": "1", "id": CLUSTER_ID}),
        "/controller_epoch": b"7",
        "/feature": _json({"features": {}, "version": 2, "status": 1}),
        "/latest_producer_id_block": _json(
            {"version": 1, "broker": 2, "block_start": "4000", "block_end": "4999"}
        ),
        f"/delegation_token/tokens/{TOKEN}": _token(TOKEN),
    }
    for path, data in contents.items():
        for parent in _parents(path):
            znodes.setdefault(parent, Znode(acls=OPEN))
        znodes[path] = Znode(data, acls=OPEN)
    for broker_id in BROKERS:
        znodes[f"/brokers/ids/{broker_id}"] = Znode(_broker(broker_id), ephemeral=True, acls=OPEN)
    controller = {"version": 2, "brokerid": 2, "timestamp": "1764000000000"}
    content = _json({**controller, "kraftControllerEpoch": -1})
    znodes["/controller"] = Znode(content, ephemeral=True, acls=OPEN)
    return ZnodeTree(znodes, zxid=0x2_0000_0113)


def _json(value: Any) -> bytes:
    return orjson.dumps(value)


def _topic(
    name: str, partitions: Mapping[str, Sequence[int]] | None = None, **changes: Any
) -> bytes:
    content = {
        "partitions": partitions or {"0": [1, 2, 3], "1": [2, 3, 1]},
        "topic_id": _TOPIC_IDS[name],
        "adding_replicas": {},
        "removing_replicas": {},
        "version": 3,
    }
    kept = {key: value for key, value in {**content, **changes}.items() if value is not None}
    return _json(kept)


def _state(leader: int, isr: Sequence[int], **changes: Any) -> bytes:
    state = {"controller_epoch": 7, "leader": leader, "version": 1, "leader_epoch": 4, "isr": isr}
    return _json({**state, **changes})


def _state_path(topic: str, partition: int) -> str:
    return f"/brokers/topics/{topic}/partitions/{partition}/state"


def _config(**configs: Any) -> bytes:
    return _json({"version": 1, "config": {k.replace("__", "."): v for k, v in configs.items()}})


def _acl(*entries: Mapping[str, str], version: int = 1) -> bytes:
    return _json({"version": version, "acls": entries})


def _entry(principal: str, operation: str, permission: str = "Allow") -> dict[str, str]:
    return {
        "principal": principal,
        "permissionType": permission,
        "operation": operation,
        "host": "*",
    }


def _token(token_id: str, **changes: Any) -> bytes:
    content = {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Aalice",
        "renewers": ["User%3Abob"],
        "issueTimestamp": 1_764_000_000_000,
        "maxTimestamp": 4_764_000_000_000,
        "expiryTimestamp": 4_664_000_000_000,
        "tokenId": token_id,
    }
    return _json({k: value for k, value in {**content, **changes}.items() if value is not None})


def _broker(broker_id: int) -> bytes:
    return _json(
        {
            "features": {},
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "endpoints": [f"PLAINTEXT://127.0.0.1:{19090 + broker_id}"],
            "rack": f"rack-{broker_id}",
            "jmx_port": -1,
            "port": 19090 + broker_id,
            "host": "127.0.0.1",
            "version": 5,
            "timestamp": "1764000000000",
        }
    )


def _topics() -> dict[str, bytes | None]:
    znodes: dict[str, bytes | None] = {}
    for name in _TOPIC_IDS:
        znodes[f"/brokers/topics/{name}"] = _topic(name)
        znodes[_state_path(name, 0)] = _state(1, [1, 2, 3])
        znodes[_state_path(name, 1)] = _state(2, [2, 3])
        znodes[f"/config/topics/{name}"] = _config()
    znodes["/config/topics/orders"] = _config(retention__ms="86400000", cleanup__policy="compact")
    return znodes


def _configs() -> dict[str, bytes | None]:
    rates = {"producer_byte_rate": "1048576", "request_percentage": "12.5"}
    return {
        "/config/brokers/2": _config(log__cleaner__threads="3"),
        "/config/users/alice": _config(**rates, **{"SCRAM-SHA-256": _SCRAM}),
        "/config/users/<default>": _config(consumer_byte_rate="2097152"),
        "/config/users/bob%40example.org/clients/reports": _config(**rates),
        "/config/clients/batch": _config(controller_mutation_rate="2.5"),
        "/config/ips/10.1.2.3": _config(connection_creation_rate="20"),
    }


def _acls() -> dict[str, bytes | None]:
    return {
        "/kafka-acl/Topic/orders": _acl(
            _entry("User:alice", "Read"), _entry("User:mallory", "All", "Deny")
        ),
        "/kafka-acl/Cluster/kafka-cluster": _acl(_entry("User:alice", "DescribeConfigs")),
        "/kafka-acl-extended/prefixed/Group/reports-": _acl(_entry("User:bob", "Read")),
        "/kafka-acl-changes": None,
        "/kafka-acl-extended-changes": None,
    }


SEEDS: Final = (
    Seed(
        "topic_without_data",
        "the znode of a topic is there only for its partitions",
        rule="topic-without-data",
        put={_state_path("ghost", 0): _state(1, [1])},
    ),
    Seed(
        "topic_unreadable",
        "somebody has edited a topic, and left a bracket out",
        rule="topic-unreadable",
        put={"/brokers/topics/audit": _topic("audit")[:-1]},
    ),
    Seed(
        "topic_without_id",
        "an old tool has created a topic",
        rule="topic-without-id",
        put={"/brokers/topics/audit": _topic("audit", topic_id=None)},
    ),
    Seed(
        "topic_ids_shared",
        "a topic's znode was copied to another name",
        rule="topic-ids-shared",
        put={"/brokers/topics/audit": _topic("audit", topic_id=_TOPIC_IDS["orders"])},
        items=("topic orders", "topic audit"),
    ),
    Seed(
        "replica_on_absent_broker",
        "a broker was taken away while it had replicas",
        rule="replica-on-absent-broker",
        put={
            "/brokers/topics/audit": _topic("audit", {"0": [1, 2, 9], "1": [2, 3, 1]}),
            _state_path("audit", 0): _state(1, [1, 2]),
        },
    ),
    Seed(
        "assignment_empty",
        "a partition has neither replicas nor state",
        rule="assignment-empty",
        put={"/brokers/topics/audit": _topic("audit", {"0": [1, 2, 3], "1": []})},
        gone=("/brokers/topics/audit/partitions/1",),
    ),
    Seed(
        "state_missing",
        "the state of a partition was deleted",
        rule="state-missing",
        gone=(_state_path("payments", 1),),
        items=("leadership payments-1",),
    ),
    Seed(
        "state_unreadable",
        "the state of a partition lacks its leader",
        rule="state-unreadable",
        put={_state_path("payments", 1): _json({"isr": [2, 3], "leader_epoch": 4})},
    ),
    Seed(
        "state_of_no_partition",
        "a topic has the state of a partition that it does not list",
        rule="state-of-no-partition",
        put={_state_path("payments", 5): _state(1, [1])},
        items=("partition payments-5",),
    ),
    Seed(
        "replica_repeated",
        "a broker is twice in an assignment",
        rule="replica-repeated",
        put={
            "/brokers/topics/audit": _topic("audit", {"0": [1, 1, 2], "1": [2, 3, 1]}),
            _state_path("audit", 0): _state(1, [1, 2]),
        },
        items=("partition audit-0",),
    ),
    Seed(
        "leader_absent",
        "a broker is gone, and is still the leader",
        rule="leader-odd",
        put={_state_path("payments", 1): _state(9, [9])},
        items=("leadership payments-1",),
    ),
    Seed(
        "deletion_queued",
        "a topic was deleted while a broker was down",
        rule="deletion-queued",
        put={"/admin/delete_topics/payments": None},
        items=("topic payments", "partition payments-0", "partition payments-1"),
    ),
    Seed(
        "reassignment_running",
        "a partition moves to another broker",
        rule="reassignment-running",
        put={
            "/brokers/topics/audit": _topic(
                "audit", {"0": [3, 1, 2], "1": [2, 3, 1]}, adding_replicas={"0": [3]}
            )
        },
        items=("partition audit-0",),
    ),
    Seed(
        "reassignment_plan",
        "an old tool has left a plan",
        rule="reassignment-plan",
        put={
            "/admin/reassign_partitions": _json(
                {
                    "version": 1,
                    "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 2, 1]}],
                }
            )
        },
    ),
    Seed(
        "config_not_a_string",
        "a config's value lost its quotes",
        rule="config-not-a-string",
        put={"/config/topics/payments": _config(retention__ms=5)},
    ),
    Seed(
        "config_of_no_topic",
        "a topic's configs survived the topic",
        rule="config-of-no-topic",
        put={"/config/topics/vanished": _config(retention__ms="1000")},
        items=("config topic vanished retention.ms",),
    ),
    Seed(
        "config_of_no_topic_odd",
        "a topic's configs survived the topic, and lost their quotes",
        rule="config-of-no-topic-odd",
        put={"/config/topics/vanished": _config(retention__ms=1000)},
    ),
    Seed(
        "config_unreadable",
        "a topic's configs are cut off",
        rule="config-unreadable",
        put={"/config/topics/orders": _config(retention__ms="86400000")[:-2]},
        items=("config topic orders retention.ms",),
    ),
    Seed(
        "topic_config_invalid",
        "a topic has a config of a future release",
        rule="topic-config-invalid",
        put={"/config/topics/payments": _config(no__such__config="1")},
        items=("config topic payments no.such.config",),
    ),
    Seed(
        "broker_config_name",
        "somebody has configured a broker by its host name",
        rule="broker-config-name",
        put={"/config/brokers/host-3": _config(log__cleaner__threads="2")},
    ),
    Seed(
        "config_type_unknown",
        "there are subscriptions for client metrics",
        rule="config-type-unknown",
        put={"/config/client-metrics/slow": _config(interval__ms="60000")},
    ),
    Seed(
        "quota_not_a_number",
        "a quota has a word as its value",
        rule="quota-not-a-number",
        put={"/config/users/alice": _config(producer_byte_rate="many")},
    ),
    Seed(
        "quota_unknown",
        "a quota is misspelled",
        rule="quota-unknown",
        put={"/config/clients/batch": _config(producer_rate="1048576")},
    ),
    Seed(
        "quota_fraction",
        "a rate in bytes has a fraction",
        rule="quota-fraction",
        put={"/config/clients/batch": _config(producer_byte_rate="1048576.5")},
    ),
    Seed(
        "entity_name_escape",
        "a user's name has a percent sign that is no escape",
        rule="entity-name-escape",
        put={"/config/users/100%zz": _config(producer_byte_rate="1024")},
    ),
    Seed(
        "entity_name_unescaped",
        "a user's name has a blank",
        rule="entity-name-unescaped",
        put={"/config/users/report writer": _config(producer_byte_rate="1024")},
        items=("quota user 'report writer' producer_byte_rate",),
    ),
    Seed(
        "scram_unreadable",
        "a credential was written in plain text",
        rule="scram-unreadable",
        put={
            "/config/users/alice": _json({"version": 1, "config": {"SCRAM-SHA-256": "opensesame"}})
        },
    ),
    Seed(
        "scram_of_a_client",
        "a credential belongs to a client id",
        rule="scram-misplaced",
        put={"/config/clients/carol": _config(**{"SCRAM-SHA-256": _SCRAM})},
        items=("SCRAM credential carol SCRAM-SHA-256",),
    ),
    Seed(
        "acl_unreadable",
        "the ACLs of a topic are cut off",
        rule="acl-unreadable",
        put={"/kafka-acl/Topic/payments": _acl(_entry("User:alice", "Write"))[:-2]},
    ),
    Seed(
        "acl_version",
        "an ACL has a future version",
        rule="acl-odd",
        put={"/kafka-acl/Topic/payments": _acl(_entry("User:alice", "Write"), version=2)},
    ),
    Seed(
        "acl_principal",
        "an ACL names a principal without its type",
        rule="acl-principal",
        put={"/kafka-acl/Topic/payments": _acl(_entry("alice", "Write"))},
    ),
    Seed(
        "acl_word_unknown",
        "an ACL has an operation of a future release",
        rule="acl-word-unknown",
        put={"/kafka-acl/Topic/payments": _acl(_entry("User:alice", "Fly"))},
        items=("ACL Allow User:alice from * Fly on Topic 'payments' (literal)",),
    ),
    Seed(
        "acl_type_unknown",
        "an ACL is of a resource type of a future release",
        rule="acl-type-unknown",
        put={"/kafka-acl/Planet/mars": _acl(_entry("User:alice", "Read"))},
        items=("ACL Allow User:alice from * Read on Planet 'mars' (literal)",),
    ),
    Seed(
        "controller_epoch_missing",
        "the controller's epoch was deleted",
        rule="controller-epoch",
        gone=("/controller_epoch",),
    ),
    Seed(
        "controller_of_kraft",
        "an earlier attempt has left its controller",
        rule="controller-of-kraft",
        put={
            "/controller": _json(
                {
                    "version": 2,
                    "brokerid": 3000,
                    "timestamp": "1764000000000",
                    "kraftControllerEpoch": 10,
                }
            )
        },
    ),
    Seed(
        "migration_empty",
        "a security tool has created /migration without data",
        rule="migration-empty",
        put={"/migration": None},
    ),
    Seed(
        "migration_unreadable",
        "/migration is not JSON",
        rule="migration-unreadable",
        put={"/migration": b"{oops"},
    ),
    Seed(
        "migration_leftover",
        "a rollback has not deleted /migration",
        rule="migration-leftover",
        put={
            "/migration": _json(
                {
                    "version": 0,
                    "kraft_metadata_offset": 12,
                    "kraft_controller_id": 3000,
                    "kraft_metadata_epoch": 1,
                    "kraft_controller_epoch": 1,
                }
            )
        },
        items=("topic orders", "topic payments", "topic audit"),
    ),
    Seed(
        "broker_stale",
        "a registration has survived its broker",
        rule="broker-stale",
        put={"/brokers/ids/5": _broker(5)},
    ),
    Seed(
        "producer_ids_empty",
        "the last block of producer ids is empty bytes",
        rule="producer-ids-unreadable",
        put={"/latest_producer_id_block": b""},
    ),
    Seed(
        "token_unreadable",
        "a delegation token is cut off",
        rule="token-unreadable",
        put={f"/delegation_token/tokens/{TOKEN}": _token(TOKEN)[:-1]},
        items=(f"delegation token {TOKEN}",),
    ),
    Seed(
        "token_version",
        "a delegation token has a future version",
        rule="token-odd",
        put={f"/delegation_token/tokens/{TOKEN}": _token(TOKEN, version=4)},
    ),
    Seed(
        "token_old",
        "a delegation token is of Kafka 3.2",
        rule="token-old",
        put={f"/delegation_token/tokens/{TOKEN}": _token(TOKEN, version=1, tokenRequester=None)},
        items=(f"delegation token {TOKEN}",),
    ),
)
