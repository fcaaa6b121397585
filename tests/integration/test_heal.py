"""`Cluster.heal` ends faults; `reset` also removes what clients have written."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from tests.integration.test_supervision import command

ADMIN = ("admin", "admin-secret")
OPTIONS: dict[str, Any] = {
    "brokers": 3,
    "listeners": {"CLIENTS": "SASL_PLAINTEXT"},
    "users": {"admin": {"password": "admin-secret", "super": True}, "alice": "alice-secret"},
    "acls": [{"principal": "User:alice", "operations": ["create"], "resource": "topic:planned"}],
    "properties": {"zookeeper.session.timeout.ms": "2000"},
}
DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS = 48, 49
OWN_ACL = ("User:alice", "*", AclOperation.DELETE, AclPermissionType.ALLOW)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers with SCRAM users and ACLs."""
    with Cluster(**OPTIONS) as running:
        yield running


@pytest.fixture
def healed(cluster: Cluster) -> Cluster:
    cluster.reset()
    return cluster


def client(servers: str, user: str = ADMIN[0], password: str = ADMIN[1]) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
    )


def create(admin: AdminClient, topic: str, replicas: int = 3) -> None:
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(30)


def done(futures: dict[Any, Future[Any]]) -> list[Any]:
    return [future.result(30) for future in futures.values()]


def call(address: str, key: int, body: dict[str, Any]) -> Any:
    """Call version 1 of an API as the super user."""
    with Connection(address) as connection:
        assert connection.log_in(*ADMIN)
        return connection.call(key, 1, body)


def set_config(address: str, broker: str, name: str, value: str) -> None:
    config = {"name": name, "configOperation": 0, "value": value}
    resource = {"resourceType": 4, "resourceName": broker, "configs": [config]}
    body = {"resources": [resource], "validateOnly": False}
    (response,) = call(address, INCREMENTAL_ALTER_CONFIGS, body)["responses"]
    assert response["errorCode"] == 0


def dynamic_configs(address: str, broker: int) -> list[tuple[str, str, str]]:
    """Return (resource, name, value) of a broker's dynamic configs and of the cluster defaults."""
    resources = [
        {"resourceType": 4, "resourceName": name, "configurationKeys": None}
        for name in (str(broker), "")
    ]
    body = {"resources": resources, "includeSynonyms": False}
    return [
        (result["resourceName"], config["name"], config["value"])
        for result in call(address, DESCRIBE_CONFIGS, body)["results"]
        for config in result["configs"]
        if config["configSource"] in (2, 3)
    ]


def set_quota(address: str, user: str) -> None:
    entity = [{"entityType": "user", "entityName": user}]
    ops = [{"key": "controller_mutation_rate", "value": 0.01, "remove": False}]
    body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    (entry,) = call(address, ALTER_CLIENT_QUOTAS, body)["entries"]
    assert entry["errorCode"] == 0


def contents(cluster: Cluster, broker: int) -> dict[str, Any]:
    """Return everything that clients can write, as one broker describes it."""
    address = cluster.bootstrap_server(broker)
    admin = client(address)
    acls = admin.describe_acls(
        AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
    ).result(30)
    users = admin.describe_user_scram_credentials().result(30)
    return {
        "topics": sorted(admin.list_topics(timeout=30).topics),
        "configs": dynamic_configs(address, broker),
        "quotas": call(address, DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
        "acls": sorted((acl.name, acl.principal, acl.operation.name) for acl in acls),
        "users": sorted(users),
    }


def test_reset_removes_what_clients_wrote_and_restores_what_was_configured(healed: Cluster) -> None:
    """Every broker shows the original topics, configs, quotas, users, ACLs and password again."""
    first = contents(healed, 1)
    admin = client(healed.bootstrap_servers)
    create(admin, "orders")
    for broker in (1, 2):
        set_config(healed.bootstrap_server(broker), str(broker), "max.connections", "700")
    set_config(healed.bootstrap_server(3), "", "log.cleaner.threads", "2")
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertions = [UserScramCredentialUpsertion(name, scram, b"new") for name in ("alice", "bob")]
    done(admin.alter_user_scram_credentials(upsertions))
    acl = AclBinding(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, *OWN_ACL)
    done(admin.create_acls([acl]))
    set_quota(healed.bootstrap_server(1), "admin")
    changed = contents(healed, healed.wait_for_controller())
    assert [name for name in first if first[name] == changed[name]] == []

    healed.reset()

    for broker in (1, 2, 3):
        assert contents(healed, broker) == first
    alice = client(healed.bootstrap_servers, "alice", "alice-secret")
    create(alice, "planned", 1)


def test_heal_ends_faults_and_keeps_topics(healed: Cluster) -> None:
    """Before the heal a controller is killed, the next is frozen, and the third broker stopped."""
    create(client(healed.bootstrap_servers), "kept")
    killed = healed.kill_controller()
    frozen = healed.wait_for_controller(other_than=killed)
    healed.freeze_controller(3600)
    (third,) = {1, 2, 3} - {killed, frozen}
    healed.stop_node(third)

    healed.heal()

    status = healed.status()
    assert [broker["condition"] for broker in status["brokers"]] == ["running"] * 3
    assert healed.controller_id() is not None
    for broker in (1, 2, 3):
        metadata = client(healed.bootstrap_server(broker)).list_topics(timeout=30)
        assert set(metadata.brokers) == {1, 2, 3}
        assert "kept" in metadata.topics


def test_heal_restarts_a_killed_zookeeper(healed: Cluster) -> None:
    pid = healed.status()["zookeeper_pid"]
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    healed.heal()
    create(client(healed.bootstrap_servers), "after-zookeeper")


def test_the_command_reset_makes_the_cluster_like_new(healed: Cluster) -> None:
    create(client(healed.bootstrap_servers), "left-over")
    healed.kill_node(2)
    done = command("reset", "--data-dir", str(healed.data_dir))
    assert done.stderr == ""
    assert done.stdout == "Started again: broker 2.\nThe cluster is like new.\n"
    assert client(healed.bootstrap_server(2)).list_topics().topics == {}
