"""`bridgehead.admin` over every kind of listener, and while the controller moves."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bridgehead import admin
from bridgehead.admin import AdminClient, AsyncAdminClient, NewTopicWithReplication
from bridgehead.cluster import Cluster
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython
from tests.integration.client_methods.ours import Ours, OursAsync
from tests.integration.drafted_listeners import BOTH_DIALECTS
from tests.integration.login_clients import Login, confluent_options, kafka_python_options
from tests.integration.processes import wait_until
from tests.integration.secured import PACKAGE, PASSWORDS, Secured
from tests.integration.test_every_admin_method import FEW, public

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LISTENERS = [
    ("SSL", ""),
    *(
        (protocol, mechanism)
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in MECHANISMS
    ),
]
MODULES = {
    "PLAIN": f"{PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Three brokers with every kind of listener."""
    more = {
        **FEW,
        "listener.name.sasl_ssl.plain.connections.max.reauth.ms": "1500",
        "bridgehead.controller.pinned": "1",  # as the classes of `client_methods/` expect
    }
    with Secured.start(tmp_path_factory.mktemp("certificates"), more) as running:
        running.set_password("alice", PASSWORDS["alice"])
        for broker in (1, 2, 3):
            for mechanism in MECHANISMS[1:3]:
                word = PASSWORDS["alice"]
                login = running.login(broker, "SASL_PLAINTEXT", mechanism, "alice", word)
                running.until_it_works(login)
        yield running


def servers_of(secured: Secured, protocol: str) -> str:
    """Return the addresses of one kind of listener."""
    return ",".join(secured.cluster.bootstrap_server(number, protocol) for number in (1, 2, 3))


def properties(
    secured: Secured, protocol: str, mechanism: str, password: str = PASSWORDS["alice"]
) -> dict[str, object]:
    """Return the properties that Kafka's own tools would read from a file."""
    texts: dict[str, object] = {
        "bootstrap.servers": servers_of(secured, protocol),
        "security.protocol": protocol,
    }
    if protocol.endswith("SSL"):
        texts |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.ca_file)}
    if protocol == "SSL":
        certificate = str(secured.certificate("alice"))
        texts |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
    if mechanism:
        options = f'username="alice" password="{password}"'
        if mechanism == "OAUTHBEARER":
            options = 'unsecuredLoginStringClaim_sub="alice"'
        texts["sasl.mechanism"] = mechanism
        texts["sasl.jaas.config"] = f"{MODULES[mechanism]} required {options};"
    return texts


def ours(secured: Secured, protocol: str, mechanism: str) -> Ours:
    methods = Ours(secured.cluster.bootstrap_servers, properties(secured, protocol, mechanism))
    methods.token_error = "DELEGATION_TOKEN_AUTH_DISABLED"
    return methods


def login(secured: Secured, protocol: str, mechanism: str) -> Login:
    """Return a login of alice for the released clients."""
    certificate = secured.certificate("alice") if protocol == "SSL" else None
    one = secured.login(1, protocol, mechanism, "alice", PASSWORDS["alice"], certificate)
    return dataclasses.replace(one, bootstrap_servers=servers_of(secured, protocol))


def kafka_python(secured: Secured, protocol: str, mechanism: str) -> KafkaPython:
    options = kafka_python_options(login(secured, protocol, mechanism))
    return KafkaPython(secured.cluster.bootstrap_servers, options)


def confluent(secured: Secured, protocol: str, mechanism: str) -> Confluent:
    options = confluent_options(login(secured, protocol, mechanism))
    return Confluent(secured.cluster.bootstrap_servers, options)


@pytest.mark.parametrize(
    "start",
    [
        ours,
        pytest.param(kafka_python, marks=pytest.mark.long),
        pytest.param(confluent, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(("protocol", "mechanism"), LISTENERS)
def test_every_method_works_over_every_kind_of_listener(
    secured: Secured,
    start: Callable[[Secured, str, str], Ours | KafkaPython | Confluent],
    protocol: str,
    mechanism: str,
) -> None:
    methods = start(secured, protocol, mechanism)
    try:
        for name in sorted(public(methods.CLIENT) - set(methods.OUT_OF_SCOPE)):
            getattr(methods, name)()
    finally:
        methods.end()


def test_both_clients_have_the_same_methods() -> None:
    assert public(AdminClient) == public(AsyncAdminClient)
    assert len(public(AdminClient)) > 40


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_a_wrong_password_fails_the_call_at_once(secured: Secured, mechanism: str) -> None:
    wrong = properties(secured, "SASL_SSL", mechanism, "wrong")
    with AdminClient(wrong) as client:
        began = time.monotonic()
        with pytest.raises(admin.AuthenticationError, match=r"The login at .* failed") as rejected:
            client.describe_cluster()
        assert time.monotonic() - began < 10
        assert "wrong" not in str(rejected.value)


def test_a_login_on_a_listener_without_sasl_fails(secured: Secured) -> None:
    texts = properties(secured, "SASL_PLAINTEXT", "PLAIN")
    texts["bootstrap.servers"] = secured.cluster.bootstrap_server(1, "PLAINTEXT")
    with AdminClient(texts) as client, pytest.raises(admin.AdminError):
        client.with_timeout(2_000).describe_cluster()


def test_a_certificate_of_another_authority_is_an_authentication_error(
    secured: Secured, tmp_path: Path
) -> None:
    texts = properties(secured, "SASL_SSL", "PLAIN")
    del texts["ssl.truststore.location"]
    untrusted = pytest.raises(admin.AuthenticationError, match="is not trusted")
    with AdminClient(texts) as client, untrusted:
        client.describe_cluster()


def test_a_login_is_renewed_before_the_broker_closes_its_connection(secured: Secured) -> None:
    """The listener demands a new login after 1.5 s (KIP-368). No call fails."""
    texts: dict[str, Any] = properties(secured, "SASL_SSL", "PLAIN")
    ended = time.monotonic() + 4
    with AdminClient({**texts, "retries": 0}) as client:
        while time.monotonic() < ended:
            client.describe_cluster()


def test_a_token_provider_logs_in(secured: Secured) -> None:
    """The client calls `token` for each connection and sends the text that it returns."""
    tokens: list[str] = []

    def token() -> str:
        tokens.append(secured.login(1, "SASL_PLAINTEXT", "OAUTHBEARER", "alice").token)
        return tokens[-1]

    texts = properties(secured, "SASL_PLAINTEXT", "OAUTHBEARER")
    del texts["sasl.jaas.config"]
    with AdminClient(texts, token=token) as client:
        assert len(client.get_all_broker_versions()) == 3
    assert tokens


def acl(**changes: Any) -> admin.AclBinding:
    binding = admin.AclBinding(
        admin.ResourceType.TOPIC,
        "orders-",
        admin.PatternType.PREFIXED,
        "User:alice",
        "*",
        admin.AclOperation.READ,
        admin.AclPermissionType.ALLOW,
    )
    return binding._replace(**changes)


@pytest.fixture(scope="module")
def guarded(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    """Three brokers with users, ACLs, tokens, and a listener of each dialect."""
    protocols = {"SHIPPED": "SASL_PLAINTEXT", "DRAFTED": "SASL_PLAINTEXT"}
    with Cluster(
        zookeeper=new_chroot(),
        controller=1,
        users={"admin": {"password": "admin-secret", "super": True}, "alice": "alice-secret"},
        listeners={
            name: {"protocol": protocol, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
            for name, protocol in protocols.items()
        },
        properties={
            "listener.name.drafted.bridgehead.dialect": BOTH_DIALECTS[
                "listener.name.drafted.bridgehead.dialect"
            ],
            "delegation.token.secret.key": "token-secret",
        },
    ) as cluster:
        yield cluster


def user(cluster: Cluster, name: str, listener: str = "SHIPPED") -> dict[str, object]:
    servers = [cluster.bootstrap_server(number, listener) for number in (1, 2, 3)]
    return {
        "bootstrap.servers": ",".join(servers),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            f'{MODULES["PLAIN"]} required username="{name}" password="{name}-secret";'
        ),
    }


def test_acls_are_created_described_and_deleted(guarded: Cluster) -> None:
    other = acl(operation=admin.AclOperation.WRITE, pattern_type=admin.PatternType.LITERAL)
    mine = admin.AclBindingFilter(principal="User:alice")
    with AdminClient(user(guarded, "admin")) as client:
        assert client.create_acls([acl(), other]) == {acl(): None, other: None}
        wait_until(lambda: set(client.describe_acls(mine)), lambda value: value == {acl(), other})
        match = admin.AclBindingFilter(
            admin.ResourceType.TOPIC, "orders-1", admin.PatternType.MATCH
        )
        assert client.describe_acls(match) == [acl()]
        deleted = client.delete_acls([match, mine])
        assert {one.get() for result in deleted.values() for one in result.get()} == {acl(), other}


def test_an_error_for_missing_rights_has_kafkas_code(guarded: Cluster) -> None:
    with AdminClient(user(guarded, "alice")) as client:
        errors = client.create_topics([NewTopicWithReplication("forbidden", 1, 1)])
        error = errors["forbidden"]
        assert isinstance(error, admin.KafkaError)
        assert error.code is admin.ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(admin.KafkaError, match="Cluster authorization failed") as rejected:
            client.describe_acls()
        assert rejected.value.code is admin.ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_client_can_log_in_with_a_delegation_token_until_it_expires(guarded: Cluster) -> None:
    with AdminClient(user(guarded, "alice")) as client:
        token = client.create_delegation_token(["User:admin"])
        assert (token.owner, token.requester) == ("User:alice", "User:alice")
        assert token.renewers == ["User:admin"]
        assert base64.b64encode(token.hmac).decode() not in repr(token)
        assert client.renew_delegation_token(token.hmac) >= token.expiry_timestamp_ms
        wait_until(
            lambda: [
                described_token.token_id
                for described_token in client.describe_delegation_tokens(["User:alice"])
            ],
            lambda value: value == [token.token_id],
        )
        secret = base64.b64encode(token.hmac).decode()
        texts = user(guarded, "alice") | {
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": (
                f'{MODULES["SCRAM-SHA-256"]} required username="{token.token_id}" '
                f'password="{secret}" tokenauth="true";'
            ),
        }

        def logs_in() -> bool:
            with AdminClient(texts) as other:
                try:
                    return len(other.describe_cluster().nodes) == 3
                except admin.AuthenticationError:
                    return False

        wait_until(logs_in)
        client.expire_delegation_token(token.hmac)
        wait_until(lambda: not logs_in())


def test_drafted_apis_work_on_a_drafted_listener_only(guarded: Cluster) -> None:
    """The calls use KIP-4's AlterTopics, ListAcls and AlterAcls, and KIP-201's validate_only."""
    resource = (admin.ResourceType.TOPIC, "drafted")
    add = admin.AclAction(
        admin.AclActionType.ADD,
        "User:bob",
        admin.AclPermissionType.ALLOW,
        "*",
        admin.AclOperation.READ,
    )
    with AdminClient(user(guarded, "admin", "DRAFTED")) as client:
        client.create_topic(NewTopicWithReplication("drafted", 1, 2))
        grown = client.alter_topics([admin.TopicAlteration("drafted", partitions=3)])
        assert grown == {"drafted": None}
        fewer = client.alter_topics([admin.TopicAlteration("drafted", partitions=1)])["drafted"]
        assert isinstance(fewer, admin.KafkaError)
        assert fewer.code is admin.ErrorCode.INVALID_PARTITIONS
        dry = admin.DeleteTopicsFlags.VALIDATE_ONLY
        missing = client.delete_topics(["drafted", "missing"], dry)
        assert missing["drafted"] is None
        assert isinstance(missing["missing"], admin.KafkaError)
        assert missing["missing"].code is admin.ErrorCode.INVALID_TOPIC_EXCEPTION
        partition = admin.TopicPartition("drafted", 0)
        assert client.delete_records({partition: 0}, validate_only=True)[partition].is_success
        assert client.alter_acls({resource: [add]}) == {resource: {add: None}}
        wait_until(
            lambda: [listed_acl.principal for listed_acl in client.list_acls("User:bob")],
            lambda value: value == ["User:bob"],
        )
        configs = {"drafted": {"retention.ms": "9000"}}
        after = client.alter_config("topic", configs).result(30)["drafted"].get()
        assert after["retention.ms"].value == "9000"
        broker = admin.ConfigResource(admin.ConfigResourceType.BROKER, "2")
        change = {broker: [admin.AlterConfigOp("log.cleaner.threads", "2")]}
        assert client.incremental_alter_configs(change) == {broker: None}
    unsupported = pytest.raises(admin.UnsupportedVersionError, match="has no AlterTopics")
    with AdminClient(user(guarded, "admin")) as client, unsupported:
        client.alter_topics([admin.TopicAlteration("drafted", partitions=4)])


@pytest.fixture(scope="module")
def moving(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    with Cluster(
        zookeeper=new_chroot(), brokers=3, properties={"zookeeper.session.timeout.ms": "2000"}
    ) as cluster:
        yield cluster


def move(cluster: Cluster, moves: int) -> None:
    for _ in range(moves):
        current = cluster.controller_id() or 1
        cluster.move_controller(current % 3 + 1)


def nothing_is_left_open(cluster: Cluster, before: set[str]) -> None:
    """Check that no thread and no connection to the cluster is left."""
    assert {thread.name for thread in threading.enumerate()} - before == set()
    servers = cluster.bootstrap_servers.split(",")
    ports = {int(server.rpartition(":")[2]) for server in servers}
    connections = psutil.Process().net_connections("tcp")
    established = [
        connection for connection in connections if connection.status == psutil.CONN_ESTABLISHED
    ]
    assert [connection for connection in established if connection.raddr.port in ports] == []


def created_exactly(cluster: Cluster, names: set[str]) -> None:
    """Check that exactly the acknowledged topics exist."""
    prefix = next(iter(names)).split("-")[0]
    with AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        wait_until(
            lambda: {topic for topic in client.list_topics() if topic.startswith(f"{prefix}-")},
            lambda value: value == names,
        )


def check_threads(cluster: Cluster, moves: int) -> None:
    before = {thread.name for thread in threading.enumerate()}
    created: set[str] = set()
    errors: list[object] = []
    stop = threading.Event()

    def work(number: int, client: AdminClient) -> None:
        at = 0
        while not stop.is_set():
            name = f"threads{moves}-{number}-{at}"
            at += 1
            try:
                client.create_topic(NewTopicWithReplication(name, 1, 1))
                created.add(name)
                assert len(client.describe_cluster().nodes) == 3
            except Exception as error:
                errors.append(error)
                return

    with AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        workers = [
            threading.Thread(target=work, args=(number, client), daemon=True)
            for number in range(16)
        ]
        for worker in workers:
            worker.start()
        move(cluster, moves)
        stop.set()
        deadline = time.monotonic() + 90
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        assert not any(worker.is_alive() for worker in workers)
    assert errors == []
    assert len(created) >= 16
    nothing_is_left_open(cluster, before)
    created_exactly(cluster, created)


async def check_tasks(cluster: Cluster, moves: int) -> None:
    created: set[str] = set()
    stop = asyncio.Event()

    async def work(number: int, client: AsyncAdminClient) -> None:
        at = 0
        while not stop.is_set():
            name = f"tasks{moves}-{number}-{at}"
            at += 1
            await client.create_topic(NewTopicWithReplication(name, 1, 1))
            created.add(name)
            assert len((await client.describe_cluster()).nodes) == 3

    client = AsyncAdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    async with asyncio.timeout(600), client, asyncio.TaskGroup() as group:
        for number in range(16):
            group.create_task(work(number, client))
        await asyncio.to_thread(move, cluster, moves)
        stop.set()
    assert len(created) >= 16
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    await asyncio.to_thread(created_exactly, cluster, created)


def test_threads_see_no_wrong_response_while_the_controller_moves(moving: Cluster) -> None:
    check_threads(moving, 3)


async def test_tasks_see_no_wrong_response_while_the_controller_moves(moving: Cluster) -> None:
    await check_tasks(moving, 3)


@pytest.mark.long
def test_threads_see_no_wrong_response_in_fifty_moves(moving: Cluster) -> None:
    check_threads(moving, 50)


@pytest.mark.long
async def test_tasks_see_no_wrong_response_in_fifty_moves(moving: Cluster) -> None:
    await check_tasks(moving, 50)


@pytest.mark.parametrize("methods", [Ours, OursAsync])
def test_calls_survive_the_death_of_the_controller(moving: Cluster, methods: type[Ours]) -> None:
    """The kill closes the client's connections. The client finds the next controller by itself."""
    client = methods(moving.bootstrap_servers)
    name = methods.__name__.lower()
    try:
        before = client.run(client.admin.describe_cluster()).controller.id
        client.run(client.admin.create_topic(NewTopicWithReplication(f"{name}-before", 1, 1)))
        moving.kill_controller()
        client.run(client.admin.create_topic(NewTopicWithReplication(f"{name}-after", 1, 1)))
        wait_until(
            lambda: client.run(client.admin.describe_cluster()),
            lambda now: now.controller is not None and now.controller.id != before,
        )
    finally:
        client.end()
        moving.heal()
