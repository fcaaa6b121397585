"""kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import kafka.admin
import kafka.errors
import pytest
from kafka import KafkaAdminClient
from kafka.structs import OffsetAndMetadata, TopicPartition

from broker_proxy.requests.routing import SHIPPED
from tests.integration.client_methods.waiting import (
    CLIENT_METRICS,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    WRITE_TXN_MARKERS,
    Reason,
    fresh,
    known_everywhere,
    soon,
)
from tests.integration.processes import wait_until

T = TypeVar("T")


def _settled(result: T, errors: Iterable[type[Exception]]) -> T:
    """Return the result. Raise a retriable error in it, for example of a coordinator that loads."""
    for error in errors:
        if issubclass(error, kafka.errors.RetriableError):
            raise error
    return result


class KafkaPython:
    """kafka-python."""

    OUT_OF_SCOPE: ClassVar[Mapping[str, Reason]] = {
        "DEFAULT_CONFIG": "not a method",
        "abort_transaction": WRITE_TXN_MARKERS,
        "describe_metadata_quorum": DESCRIBE_QUORUM,
        "describe_topic_partitions": DESCRIBE_TOPIC_PARTITIONS,
        "list_config_resources": CLIENT_METRICS,
    }
    CLIENT = KafkaAdminClient

    def __init__(self, bootstrap_servers: str, more: Mapping[str, Any] | None = None) -> None:
        """`more` are options of the client, such as other bootstrap_servers."""
        self._servers = bootstrap_servers
        self._options = {"bootstrap_servers": bootstrap_servers, **(more or {})}
        self.admin = KafkaAdminClient(**self._options)

    def end(self) -> None:
        self.admin.close()

    def topic(self, partitions: int = 1) -> str:
        name = fresh("kafka-python")
        self.admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 3}})
        self.admin.wait_for_topics([name])
        known_everywhere(self._servers, name, partitions)
        return name

    def described(self, name: str) -> list[dict[str, Any]]:
        (topic,) = self.admin.describe_topics([name])
        partitions: list[dict[str, Any]] = topic["partitions"]
        return partitions

    def resource(self, name: str, **configs: str | None) -> kafka.admin.ConfigResource:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        return kafka.admin.ConfigResource("TOPIC", name, named)

    def close(self) -> None:
        KafkaAdminClient(**self._options).close()

    def api_versions(self) -> None:
        assert {int(key) for key in self.admin.api_versions()} == set(SHIPPED)

    def get_broker_version_data(self) -> None:
        assert self.admin.get_broker_version_data(2) is not None

    def create_topics(self) -> None:
        assert len(self.described(self.topic(2))) == 2

    def wait_for_topics(self) -> None:
        self.admin.wait_for_topics([self.topic()])

    def create_partitions(self) -> None:
        name = self.topic(1)
        self.admin.create_partitions({name: 3})
        wait_until(lambda: self.described(name), lambda result: len(result) == 3)

    def delete_topics(self) -> None:
        name = self.topic()
        self.admin.delete_topics([name])
        wait_until(self.admin.list_topics, lambda names: name not in names)

    def list_topics(self) -> None:
        assert self.topic() in self.admin.list_topics()

    def describe_topics(self) -> None:
        (partition,) = self.described(self.topic())
        assert sorted(partition["replica_nodes"]) == [1, 2, 3]

    def describe_cluster(self) -> None:
        result = self.admin.describe_cluster()
        assert (result["controller_id"], len(result["brokers"])) == (1, 3)

    def alter_configs(self) -> None:
        name = self.topic()
        self.admin.alter_configs([self.resource(name, retention_ms="1000")])
        assert self.configs(name) == {"retention.ms": "1000"}

    def configs(self, name: str) -> dict[str, str]:
        configs = self.admin.describe_configs([self.resource(name)])["topic"][name]
        return {key: entry["value"] for key, entry in configs.items()}

    def describe_configs(self) -> None:
        name = self.topic()
        resource = self.resource(name)
        configs = self.admin.describe_configs([resource], config_filter="all")["topic"][name]
        assert configs["cleanup.policy"]["value"] == "delete"

    def reset_configs(self) -> None:
        name = self.topic()
        self.admin.alter_configs([self.resource(name, retention_ms="1000")])
        self.admin.reset_configs([self.resource(name, retention_ms=None)])
        assert self.configs(name) == {}

    def alter_partition_reassignments(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        assert self.admin.alter_partition_reassignments({partition: [1, 2]}) == {partition: None}
        wait_until(
            lambda: self.described(partition.topic)[0]["replica_nodes"],
            lambda replicas: replicas == [1, 2],
        )

    def list_partition_reassignments(self) -> None:
        assert self.admin.list_partition_reassignments() == {}

    def elect_leaders(self) -> None:
        name = self.topic()
        result = self.admin.elect_leaders(0, {name: [0]}, raise_errors=False)
        assert "84" in str(result) or "ElectionNotNeeded" in str(result)

    def alter_replica_log_dirs(self) -> None:
        name = self.topic()
        (broker,) = (folder for folder in self.admin.describe_log_dirs() if folder["broker"] == 2)
        paths = [folder["log_dir"] for folder in broker["log_dirs"]]
        result = self.admin.alter_replica_log_dirs({(name, 0, 2): max(paths)})
        assert list(result.values()) == [kafka.errors.NoError]

    def describe_log_dirs(self) -> None:
        result = self.admin.describe_log_dirs()
        assert sorted(broker["broker"] for broker in result) == [1, 2, 3]
        names = {Path(folder["log_dir"]).name for broker in result for folder in broker["log_dirs"]}
        assert names == {"logs-a", "logs-b"}

    def delete_records(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        result = self.admin.delete_records({partition: 0})
        assert result[partition]["low_watermark"] == 0

    def list_partition_offsets(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        assert self.admin.list_partition_offsets({partition: -1})[partition].offset == 0

    def describe_producers(self) -> None:
        partition = TopicPartition(self.topic(), 0)
        assert self.admin.describe_producers([partition])[partition].active_producers == []

    def find_hanging_transactions(self) -> None:
        assert self.admin.find_hanging_transactions() == []

    def list_transactions(self) -> None:
        assert self.admin.list_transactions() == {1: [], 2: [], 3: []}

    def describe_transactions(self) -> None:
        unavailable = kafka.errors.CoordinatorNotAvailableError
        with pytest.raises(kafka.errors.TransactionalIdNotFoundError):
            soon(lambda: self.admin.describe_transactions(["t"]), unavailable)

    def list_groups(self) -> None:
        assert self.admin.list_groups() == []

    def describe_groups(self) -> None:
        unavailable = kafka.errors.CoordinatorNotAvailableError
        result = soon(lambda: self.admin.describe_groups(["g"]), unavailable)
        assert "Dead" in str(result)

    def delete_groups(self) -> None:
        unavailable = kafka.errors.CoordinatorNotAvailableError
        result = soon(lambda: self.admin.delete_groups(["g"]), unavailable)
        assert result == {"g": "GroupIdNotFoundError"}

    def list_group_offsets(self) -> None:
        unavailable = kafka.errors.CoordinatorNotAvailableError
        result = soon(lambda: self.admin.list_group_offsets({"g": None}), unavailable)
        assert result == {"g": {}}

    def alter_group_offsets(self) -> None:
        name = self.topic()
        offsets = {TopicPartition(name, 0): OffsetAndMetadata(3, "", -1)}

        def alter() -> dict[TopicPartition, type[Exception]]:
            errors: dict[TopicPartition, type[Exception]] = self.admin.alter_group_offsets(
                name, offsets
            )
            return _settled(errors, errors.values())

        result = soon(alter, kafka.errors.RetriableError)
        assert result == dict.fromkeys(offsets, kafka.errors.NoError)
        assert self.admin.list_group_offsets({name: None}) == {name: offsets}
        self.admin.delete_groups([name])

    def reset_group_offsets(self) -> None:
        name = self.topic()
        partition = TopicPartition(name, 0)

        def reset() -> dict[TopicPartition, dict[str, Any]]:
            offsets: dict[TopicPartition, dict[str, Any]] = self.admin.reset_group_offsets(
                name, {partition: 7}
            )
            return _settled(offsets, (row["error"] for row in offsets.values()))

        result = soon(reset, kafka.errors.RetriableError)
        assert result == {partition: {"error": kafka.errors.NoError, "offset": 0}}  # an empty log
        self.admin.delete_groups([name])

    def remove_group_members(self) -> None:
        member = kafka.admin.MemberToRemove(member_id="unknown")
        unavailable = kafka.errors.CoordinatorNotAvailableError
        result = soon(lambda: self.admin.remove_group_members("g", [member]), unavailable)
        assert list(result.values()) == [kafka.errors.UnknownMemberIdError]

    def delete_group_offsets(self) -> None:
        unavailable = kafka.errors.CoordinatorNotAvailableError
        partitions = [TopicPartition(self.topic(), 0)]
        with pytest.raises(kafka.errors.GroupIdNotFoundError):
            soon(lambda: self.admin.delete_group_offsets("g", partitions), unavailable)

    def alter_user_scram_credentials(self) -> None:
        mechanism = kafka.admin.ScramMechanism.SCRAM_SHA_256
        user = fresh("user")
        new = kafka.admin.UserScramCredentialUpsertion(user, mechanism, "secret", iterations=4096)
        result = self.admin.alter_user_scram_credentials([new])
        assert list(result) == [user]
        assert user in str(self.admin.describe_user_scram_credentials([user]))

    def describe_user_scram_credentials(self) -> None:
        result = self.admin.describe_user_scram_credentials(["missing"])
        assert "missing" in str(result)

    def describe_features(self) -> None:
        assert self.admin.describe_features() == {}

    def update_features(self) -> None:
        assert self.admin.update_features({}) == {}

    def acl(self, kind: Any) -> Any:
        pattern = kafka.admin.ResourcePattern(kafka.admin.ResourceType.TOPIC, "t")
        operation, allow = kafka.admin.ACLOperation.READ, kafka.admin.ACLPermissionType.ALLOW
        return kind("User:alice", "*", operation, allow, pattern)

    def create_acls(self) -> None:
        self.rejected(lambda: self.admin.create_acls([self.acl(kafka.admin.ACL)]))

    def describe_acls(self) -> None:
        self.rejected(lambda: self.admin.describe_acls(self.acl(kafka.admin.ACLFilter)))

    def delete_acls(self) -> None:
        self.rejected(lambda: self.admin.delete_acls([self.acl(kafka.admin.ACLFilter)]))

    def rejected(self, call: Callable[[], Any]) -> None:
        """Check that a call reports SECURITY_DISABLED, by an exception or in its result."""
        expected = kafka.errors.SecurityDisabledError
        try:
            result = str(call())
        except expected:
            return
        assert expected.__name__ in result
