"""Real nodes write, load, describe and remove quotas, and write and describe credentials."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import call_once
from tests.integration.conftest import StartCluster
from tests.integration.zookeeper_peers import kazoo_client

ALTER_QUOTAS, DESCRIBE_QUOTAS = 49, 48
RATE, IP_RATE = "consumer_byte_rate", "connection_creation_rate"
Entity = dict[str, str | None]


def call(cluster: Cluster, broker: int, key: int, body: dict[str, Any]) -> Any:
    """Send a request in version 1 to one broker."""
    return call_once(cluster.bootstrap_server(broker), key, 1, body)


def alter(cluster: Cluster, broker: int, *entities: Entity, remove: bool = False) -> list[int]:
    """Set or remove one quota of each entity, in one request; return the codes."""
    entries = [
        {
            "entity": [{"entityType": kind, "entityName": name} for kind, name in entity.items()],
            "ops": [{"key": IP_RATE if "ip" in entity else RATE, "value": 5.0, "remove": remove}],
        }
        for entity in entities
    ]
    response = call(cluster, broker, ALTER_QUOTAS, {"entries": entries, "validateOnly": False})
    return [entry["errorCode"] for entry in response["entries"]]


def described(
    cluster: Cluster, broker: int, *components: tuple[str, int, str | None], strict: bool = False
) -> list[Entity]:
    """Return the entities that match, in a stable order."""
    parts = [{"entityType": k, "matchType": t, "match": m} for k, t, m in components]
    response = call(cluster, broker, DESCRIBE_QUOTAS, {"components": parts, "strict": strict})
    assert response["errorCode"] == 0
    entities = [
        {p["entityType"]: p["entityName"] for p in e["entity"]} for e in response["entries"]
    ]
    return sorted(entities, key=str)


def znodes_below(cluster: Cluster, path: str) -> set[str]:
    with kazoo_client(cluster.zookeeper_connect) as zookeeper:

        def walk(at: str) -> set[str]:
            below = {f"{at}/{name}" for name in zookeeper.get_children(at)}
            return below.union(*map(walk, below))

        return {entry.removeprefix(f"{path}/") for entry in walk(path)}


def test_quotas_are_written_described_and_removed_by_another_controller(
    start_brokers: StartCluster,
) -> None:
    """A parent znode is created once, and removed with the last quota below it."""
    cluster = start_brokers(controller=1)
    both: list[Entity] = [{"user": "u", "client-id": name} for name in ("c", "d e")]
    user: Entity = {"user": "u"}
    default: Entity = {"user": None, "client-id": None}
    everyone: list[Entity] = [*both, user, default, {"client-id": "c"}, {"ip": "10.0.0.1"}]
    assert alter(cluster, 2, *everyone) == [0] * 6
    clients = {"u", "u/clients", "u/clients/c", "u/clients/d%20e"}
    of_default = {"<default>", "<default>/clients", "<default>/clients/<default>"}
    assert znodes_below(cluster, "/config/users") == clients | of_default

    assert described(cluster, 3) == sorted(everyone, key=str)
    assert described(cluster, 3, strict=True) == []
    any_user, any_client = ("user", 2, None), ("client-id", 2, None)
    assert described(cluster, 3, any_user) == sorted([*both, user, default], key=str)
    assert described(cluster, 3, any_user, strict=True) == [user]
    assert described(cluster, 3, any_user, any_client) == sorted([*both, default], key=str)
    assert described(cluster, 3, ("user", 1, None), any_client) == [default]
    assert described(cluster, 3, any_client, strict=True) == [{"client-id": "c"}]
    assert described(cluster, 3, ("client-id", 0, "c")) == sorted(
        [both[0], {"client-id": "c"}], key=str
    )
    assert described(cluster, 3, ("ip", 2, None)) == [{"ip": "10.0.0.1"}]

    cluster.move_controller(3)
    assert alter(cluster, 1, user, both[0], remove=True) == [0, 0]
    assert znodes_below(cluster, "/config/users") == {"u", *clients - {"u/clients/c"}} | of_default
    assert alter(cluster, 1, both[1], both[1], remove=True) == [0]
    assert znodes_below(cluster, "/config/users") == of_default


def test_a_credential_is_stored_and_not_logged(start_cluster: StartCluster, tmp_path: Path) -> None:
    """librdkafka derives the salted password. Only ZooKeeper's files have the keys."""
    cluster = start_cluster(data_dir=tmp_path / "cluster", controller=1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_server(2)})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    salt = b"a salt that is long"
    upsertion = UserScramCredentialUpsertion("alice", info, b"a password that is long", salt)
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(timeout=30)
    futures = admin.describe_user_scram_credentials(["alice"])
    assert isinstance(futures, dict)
    description = futures["alice"].result(timeout=30)
    assert [
        (scram_credential_info.mechanism, scram_credential_info.iterations)
        for scram_credential_info in description.scram_credential_infos
    ] == [(ScramMechanism.SCRAM_SHA_256, 8192)]
    with kazoo_client(cluster.zookeeper_connect) as zookeeper:
        stored = zookeeper.get("/config/users/alice")[0].decode()
    fields = dict(part.split("=", 1) for part in stored.split('"')[7].split(","))
    assert fields["iterations"] == "8192"
    assert base64.b64decode(fields["salt"]) == salt
    secrets = [fields[name].encode() for name in ("salt", "stored_key", "server_key")]
    secrets += [salt, b"a password that is long"]
    cluster.stop()
    files = [path for path in (tmp_path / "cluster").rglob("*") if path.is_file()]
    written = [file for file in files if "zookeeper" not in file.parts]
    assert any(file.stat().st_size for file in written if "nodes" in file.parts)
    for file in written:
        content = file.read_bytes()
        assert not any(secret in content for secret in secrets), file
