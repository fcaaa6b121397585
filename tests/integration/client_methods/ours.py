"""Bridgehead's own admin clients, blocking and asyncio. Both run the same checks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from bridgehead import admin
from bridgehead.admin import ErrorCode, KafkaError, TopicPartition
from bridgehead.kafka_wire.api_key import ApiKey
from broker_proxy.requests.routing import SHIPPED
from tests.integration.client_methods.waiting import Reason, fresh, known_everywhere, soon
from tests.integration.processes import wait_until

DRAFTED = "needs an API of KIP-4; test_admin_client.py calls it on a drafted listener"


class Ours:
    """`AdminClient`."""

    OUT_OF_SCOPE: ClassVar[Mapping[str, Reason]] = {
        "alter_acls": DRAFTED,
        "alter_topics": DRAFTED,
        "list_acls": DRAFTED,
    }
    CLIENT: ClassVar[type[Any]] = admin.AdminClient

    # The error of requests for tokens on a PLAINTEXT listener. On other listeners, authenticated
    # clients get DELEGATION_TOKEN_AUTH_DISABLED if the brokers have no delegation.token.secret.key.
    token_error = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    # The keys of the APIs that the brokers serve. The test against Kafka replaces them.
    apis = frozenset[int](SHIPPED)

    def __init__(self, bootstrap_servers: str, more: Mapping[str, object] | None = None) -> None:
        """`more` has further client properties, such as other bootstrap.servers."""
        self._servers = bootstrap_servers
        self._more = more
        self.properties: dict[str, object] = {"bootstrap.servers": bootstrap_servers}
        self.properties.update(more or {})
        self.connect()

    def connect(self) -> None:
        self.admin: Any = admin.AdminClient(self.properties)

    def end(self) -> None:
        self.admin.close()

    def run(self, result: Any) -> Any:
        """Return the result of a method. `OursAsync` runs the coroutine to get it."""
        return result

    def topic(self, partitions: int = 1) -> str:
        name = fresh("ours")
        self.run(self.admin.create_topic(admin.NewTopicWithReplication(name, partitions, 3)))
        known_everywhere(self._servers, name, partitions)
        return name

    def described(self, name: str) -> dict[int, Any]:
        topic = self.run(self.admin.describe_topics([name]))[name].get()
        return {number: partition.get() for number, partition in topic.partitions.items()}

    def code(self, call: Callable[[], Any]) -> str:
        """Return the name of the error code that a call raises."""
        with pytest.raises(KafkaError) as rejected:
            self.run(call())
        return rejected.value.code.name

    def close(self) -> None:
        other = type(self)(self._servers, self._more)
        other.run(other.admin.close())
        with pytest.raises(admin.ClientClosedError):
            other.run(other.admin.describe_cluster())
        other.end()

    def pinned_to(self) -> None:
        for broker in (1, 2, 3):
            assert len(self.run(self.admin.pinned_to(broker).describe_cluster()).nodes) == 3

    def with_timeout(self) -> None:
        assert len(self.run(self.admin.with_timeout(30_000).describe_cluster()).nodes) == 3

    def create_topics(self) -> None:
        name = self.topic()
        many = [admin.NewTopicWithReplication(topic, 2, 3) for topic in (name, fresh("ours"))]
        errors = self.run(self.admin.create_topics(many))
        assert [getattr(error, "code", None) for error in errors.values()] == [36, None]
        dry = fresh("ours")
        flag = admin.CreateTopicsFlags.VALIDATE_ONLY
        wanted = [admin.NewTopicWithReplication(dry, 1, 1)]
        assert self.run(self.admin.create_topics(wanted, flag)) == {dry: None}
        missing = self.run(self.admin.describe_topics([dry]))[dry].error
        assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def create_topic(self) -> None:
        name = fresh("ours")
        wanted = admin.NewTopicWithReplicaAssignments(name, {0: [2, 1]}, {"retention.ms": "5000"})
        self.run(self.admin.create_topic(wanted))
        known_everywhere(self._servers, name, 1)
        partition = self.described(name)[0]
        assert ([replica.id for replica in partition.replicas], partition.leader.id) == ([2, 1], 2)
        assert self.code(lambda: self.admin.create_topic(wanted)) == "TOPIC_ALREADY_EXISTS"

    def delete_topics(self) -> None:
        name, missing = self.topic(), fresh("missing")
        errors = self.run(self.admin.delete_topics([name, missing]))
        assert errors[name] is None
        assert errors[missing].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wait_until(lambda: name not in self.run(self.admin.list_topics()))

    def delete_topic(self) -> None:
        name, flag = self.topic(), admin.DeleteTopicsFlags.NONBLOCKING
        self.run(self.admin.delete_topic(name, flag))
        wait_until(lambda: name not in self.run(self.admin.list_topics()))

    def delete_topics_by_id(self) -> None:
        name = self.topic()
        topic_id = self.run(self.admin.describe_topics([name]))[name].get().topic_id
        assert self.run(self.admin.delete_topics_by_id([topic_id])) == {topic_id: None}

    def list_topics(self) -> None:
        assert self.topic(2) in self.run(self.admin.list_topics())
        soon(lambda: self.run(self.admin.get_group_information("g")), KafkaError)
        assert "__consumer_offsets" not in self.run(self.admin.list_topics())
        internal = admin.ListTopicsFlags.INCLUDE_INTERNAL | admin.ListTopicsFlags.INCLUDE_EXTERNAL
        wait_until(lambda: "__consumer_offsets" in self.run(self.admin.list_topics(internal)))

    def describe_topics(self) -> None:
        name = self.topic(2)
        partitions = self.described(name)
        assert {replica.id for replica in partitions[1].isr} == {1, 2, 3}
        operations = self.run(self.admin.describe_topics([name], True))[name].get()
        assert admin.AclOperation.DESCRIBE in operations.authorized_operations

    def describe_cluster(self) -> None:
        result = self.run(self.admin.describe_cluster())
        assert [node.id for node in result.nodes] == [1, 2, 3]
        assert result.controller in result.nodes

    def get_all_broker_versions(self) -> None:
        result = self.run(self.admin.get_all_broker_versions())
        assert {node.id for node in result} == {1, 2, 3}
        assert {frozenset(response.get().apis) for response in result.values()} == {self.apis}

    def describe_features(self) -> None:
        assert self.run(self.admin.describe_features()).finalized == {}

    def update_features(self) -> None:
        update = {"missing": admin.FeatureUpdate(1)}
        assert self.run(self.admin.update_features(update))["missing"] is not None

    def get_all_groups(self) -> None:
        result = self.run(self.admin.get_all_groups())
        assert {node.id: response.get() for node, response in result.items()} == {
            1: [],
            2: [],
            3: [],
        }

    def get_group_information(self) -> None:
        assert self.run(self.admin.get_group_information("g")).state == "Dead"

    def describe_groups(self) -> None:
        group = self.run(self.admin.describe_groups(["g"]))["g"].get()
        assert (group.state, group.members) == ("Dead", [])

    def delete_groups(self) -> None:
        error = self.run(self.admin.delete_groups(["g"]))["g"]
        assert error.code is ErrorCode.GROUP_ID_NOT_FOUND

    def list_group_offsets(self) -> None:
        assert self.run(self.admin.list_group_offsets("g")) == {}

    def alter_group_offsets(self) -> None:
        """Brokers without a data plane do not serve OffsetCommit."""
        name = self.topic()
        offsets = {admin.TopicPartition(name, 0): 1}
        if ApiKey.OFFSET_COMMIT not in self.apis:
            with pytest.raises(admin.UnsupportedVersionError):
                self.run(self.admin.alter_group_offsets(name, offsets))
            return
        assert self.run(self.admin.alter_group_offsets(name, offsets)) == dict.fromkeys(offsets)
        committed = self.run(self.admin.list_group_offsets(name))
        assert {key: offset.offset for key, offset in committed.items()} == offsets
        assert self.run(self.admin.delete_groups([name])) == {name: None}

    def delete_group_offsets(self) -> None:
        with pytest.raises(admin.KafkaError) as raised:
            self.run(self.admin.delete_group_offsets("g", [admin.TopicPartition("t", 0)]))
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    def resource(self, name: str) -> admin.ConfigResource:
        return admin.ConfigResource(admin.ConfigResourceType.TOPIC, name)

    def configs(self, name: str) -> dict[str, str]:
        resource = self.resource(name)
        configs = self.run(self.admin.describe_configs([resource]))[resource].get()
        return {key: entry.value for key, entry in configs.items()}

    def describe_configs(self) -> None:
        name = self.topic()
        assert self.configs(name)["cleanup.policy"] == "delete"
        brokers = [admin.ConfigResource(admin.ConfigResourceType.BROKER, str(b)) for b in (1, 2, 3)]
        described = self.run(
            self.admin.describe_configs([*brokers, self.resource(name)], include_synonyms=True)
        )
        ids = [described[broker].get()["broker.id"].value for broker in brokers]
        assert ids == ["1", "2", "3"]

    def alter_configs(self) -> None:
        name = self.topic()
        resource = self.resource(name)
        wanted = {resource: {"retention.ms": "1000"}}
        assert self.run(self.admin.alter_configs(wanted)) == {resource: None}
        assert self.configs(name)["retention.ms"] == "1000"

    def incremental_alter_configs(self) -> None:
        name = self.topic()
        resource, append = self.resource(name), admin.AlterConfigOpType.APPEND
        broker = admin.ConfigResource(admin.ConfigResourceType.BROKER, "2")
        wanted = {
            resource: [admin.AlterConfigOp("cleanup.policy", "compact", append)],
            broker: [admin.AlterConfigOp("log.cleaner.threads", "2")],
            self.resource("missing"): [admin.AlterConfigOp("retention.ms", "1")],
        }
        errors = self.run(self.admin.incremental_alter_configs(wanted))
        assert [error is None for error in errors.values()] == [True, True, False]
        assert self.configs(name)["cleanup.policy"] == "delete,compact"

    def describe_config(self) -> None:
        name = self.topic()
        described = self.run(self.admin.describe_config("topic", [name, "missing"]))
        assert described[name].get()["cleanup.policy"].value == "delete"
        assert described["missing"].is_failure

    def future(self, result: Any) -> Any:
        return result.result(30)

    def alter_config(self) -> None:
        name = self.topic()
        changes = {name: {"retention.ms": "7000"}, "missing": {"retention.ms": "1"}}
        after = self.future(self.admin.alter_config("topic", changes))
        assert after[name].get()["retention.ms"].value == "7000"
        assert after["missing"].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        after = self.future(self.admin.alter_config("topic", {name: {"retention.ms": None}}))
        assert after[name].get()["retention.ms"].is_default

    def create_partitions(self) -> None:
        name = self.topic()
        wanted = {name: admin.NewPartitions(3, [[1, 2, 3], [2, 3, 1]])}
        assert self.run(self.admin.create_partitions(wanted)) == {name: None}
        wait_until(lambda: len(self.described(name)), lambda count: count == 3)
        fewer = self.run(self.admin.create_partitions({name: admin.NewPartitions(1)}))[name]
        assert fewer.code is ErrorCode.INVALID_PARTITIONS

    def elect_leaders(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        preferred = admin.ElectionType.PREFERRED
        errors = self.run(self.admin.elect_leaders(preferred, [partition]))
        assert errors[partition].code is ErrorCode.ELECTION_NOT_NEEDED
        # Without partitions in the request, the result has only partitions that needed an election.
        assert set(self.run(self.admin.elect_leaders(preferred)).values()) <= {None}

    def alter_partition_reassignments(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        wanted = {partition: [1, 2]}
        assert self.run(self.admin.alter_partition_reassignments(wanted)) == {partition: None}
        wait_until(
            lambda: [replica.id for replica in self.described(partition.topic)[0].replicas],
            lambda replicas: replicas == [1, 2],
        )
        cancelled = self.run(self.admin.alter_partition_reassignments({partition: None}))
        assert cancelled[partition].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    def list_partition_reassignments(self) -> None:
        assert self.run(self.admin.list_partition_reassignments()) == {}
        partition = TopicPartition(self.topic(), 0)
        assert self.run(self.admin.list_partition_reassignments([partition])) == {}

    def delete_records(self) -> None:
        name = self.topic(2)
        wanted = {
            TopicPartition(name, 0): 0,
            TopicPartition(name, 1): 5,
            TopicPartition("missing", 0): 0,
        }
        deleted = self.run(self.admin.delete_records(wanted))
        first, second, missing = deleted.values()
        assert first.get() == 0
        assert second.error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert missing.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def list_offsets(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        offsets = self.run(self.admin.list_offsets({partition: admin.LATEST}))
        assert offsets[partition].get().offset == 0

    def describe_log_dirs(self) -> None:
        described = self.run(self.admin.describe_log_dirs())
        ends = {
            broker: {path[-2:] for path in result.get()} for broker, result in described.items()
        }
        assert ends == {key: {"-a", "-b"} for key in (1, 2, 3)}

    def alter_replica_log_dirs(self) -> None:
        replica = admin.TopicPartitionReplica(self.topic(), 0, 2)
        target = max(self.run(self.admin.describe_log_dirs([2]))[2].get())
        assert self.run(self.admin.alter_replica_log_dirs({replica: target})) == {replica: None}
        described = self.run(self.admin.describe_log_dirs([2]))[2].get()[target].get()
        assert TopicPartition(replica.topic, 0) in described.replicas

    def acl(self) -> admin.AclBinding:
        return admin.AclBinding(
            admin.ResourceType.TOPIC,
            "t",
            admin.PatternType.LITERAL,
            "User:alice",
            "*",
            admin.AclOperation.READ,
            admin.AclPermissionType.ALLOW,
        )

    def describe_acls(self) -> None:
        assert self.code(lambda: self.admin.describe_acls()) == "SECURITY_DISABLED"

    def create_acls(self) -> None:
        (error,) = self.run(self.admin.create_acls([self.acl()])).values()
        assert error.code is ErrorCode.SECURITY_DISABLED

    def delete_acls(self) -> None:
        (result,) = self.run(self.admin.delete_acls([admin.AclBindingFilter()])).values()
        assert result.error.code is ErrorCode.SECURITY_DISABLED

    def alter_client_quotas(self) -> None:
        entity = admin.quota_entity({"user": fresh("user"), "client-id": None})
        changes = {entity: {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}}
        assert self.run(self.admin.alter_client_quotas(changes)) == {entity: None}
        removal = {entity: {"consumer_byte_rate": None}}
        assert self.run(self.admin.alter_client_quotas(removal)) == {entity: None}
        wait_until(
            lambda: self.run(self.admin.describe_client_quotas()).get(entity),
            lambda value: value == {"producer_byte_rate": 5.0},
        )

    def describe_client_quotas(self) -> None:
        user = fresh("user")
        entity = admin.quota_entity({"user": user})
        self.run(self.admin.alter_client_quotas({entity: {"request_percentage": 50.0}}))
        match = admin.ClientQuotaFilterComponent("user", admin.QuotaMatch.EXACT, user)
        wait_until(
            lambda: self.run(self.admin.describe_client_quotas([match], strict=True)),
            lambda value: value == {entity: {"request_percentage": 50.0}},
        )

    def alter_user_scram_credentials(self) -> None:
        user, mechanism = fresh("user"), admin.ScramMechanism.SCRAM_SHA_512
        changes: list[Any] = [admin.ScramUpsertion(user, mechanism, "secret", 4096)]
        assert self.run(self.admin.alter_user_scram_credentials(changes)) == {user: None}
        wait_until(
            lambda: self.run(self.admin.describe_user_scram_credentials([user]))[user],
            lambda value: value == admin.Try.new_value([(mechanism, 4096)]),
        )
        deletion = [admin.ScramDeletion(user, mechanism)]
        assert self.run(self.admin.alter_user_scram_credentials(deletion)) == {user: None}

    def describe_user_scram_credentials(self) -> None:
        described = self.run(self.admin.describe_user_scram_credentials(["missing"]))
        assert described["missing"].error.code is ErrorCode.RESOURCE_NOT_FOUND
        assert "missing" not in self.run(self.admin.describe_user_scram_credentials())

    def create_delegation_token(self) -> None:
        code = self.code(lambda: self.admin.create_delegation_token(["User:alice"]))
        assert code == self.token_error

    def renew_delegation_token(self) -> None:
        code = self.code(lambda: self.admin.renew_delegation_token(b"x"))
        assert code == self.token_error

    def expire_delegation_token(self) -> None:
        code = self.code(lambda: self.admin.expire_delegation_token(b"x"))
        assert code == self.token_error

    def describe_delegation_tokens(self) -> None:
        code = self.code(lambda: self.admin.describe_delegation_tokens())
        assert code == self.token_error


class OursAsync(Ours):
    """`AsyncAdminClient` in its own event loop."""

    CLIENT = admin.AsyncAdminClient

    def connect(self) -> None:
        self._runner = asyncio.Runner()
        self.admin = admin.AsyncAdminClient(self.properties)

    def end(self) -> None:
        self.run(self.admin.close())
        self._runner.close()

    def run(self, result: Any) -> Any:
        return self._runner.run(result) if inspect.iscoroutine(result) else result

    future = run
