"""confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.integration.client_methods.waiting import (
    WITHIN_S,
    Reason,
    fresh,
    known_everywhere,
)
from tests.integration.processes import wait_until


class Confluent:
    """confluent-kafka (librdkafka), which returns futures."""

    OUT_OF_SCOPE: ClassVar[Mapping[str, Reason]] = {
        "poll": "serves callbacks, sends no request",
        "set_sasl_credentials": "stores a password, sends no request",
    }
    CLIENT = confluent.AdminClient

    def __init__(self, bootstrap_servers: str, more: Mapping[str, Any] | None = None) -> None:
        """`more` are properties of the client, such as other bootstrap.servers."""
        self._servers = bootstrap_servers
        self.admin = confluent.AdminClient({"bootstrap.servers": bootstrap_servers, **(more or {})})

    def end(self) -> None:
        del self.admin  # this ends the client's threads

    def topic(self, partitions: int = 1) -> str:
        name = fresh("confluent")
        self.admin.create_topics([confluent.NewTopic(name, partitions, 3)])[name].result(WITHIN_S)
        known_everywhere(self._servers, name, partitions)
        return name

    def partitions(self, name: str) -> int:
        return len(self.admin.list_topics(name, timeout=WITHIN_S).topics[name].partitions)

    def create_topics(self) -> None:
        assert self.partitions(self.topic(2)) == 2

    def list_topics(self) -> None:
        name = self.topic()
        wait_until(
            lambda: self.admin.list_topics(timeout=WITHIN_S).topics, lambda result: name in result
        )

    def delete_topics(self) -> None:
        name = self.topic()
        self.admin.delete_topics([name])[name].result(WITHIN_S)
        wait_until(
            lambda: self.admin.list_topics(timeout=WITHIN_S).topics, lambda all_: name not in all_
        )

    def create_partitions(self) -> None:
        name = self.topic()
        self.admin.create_partitions([confluent.NewPartitions(name, 3)])[name].result(WITHIN_S)
        wait_until(lambda: self.partitions(name), lambda count: count == 3)

    def describe_topics(self) -> None:
        name = self.topic()
        wanted = confluent_kafka.TopicCollection([name])
        result = self.admin.describe_topics(wanted)[name].result(WITHIN_S)
        assert sorted(node.id for node in result.partitions[0].replicas) == [1, 2, 3]

    def describe_cluster(self) -> None:
        result = self.admin.describe_cluster().result(WITHIN_S)
        assert (result.controller.id, len(result.nodes)) == (1, 3)

    def cluster_id(self) -> None:
        result = self.admin.describe_cluster().result(WITHIN_S)
        assert self.admin.cluster_id(WITHIN_S) == result.cluster_id

    def configs(self, name: str) -> dict[str, str]:
        resource = confluent.ConfigResource("topic", name)
        result = self.admin.describe_configs([resource])[resource].result(WITHIN_S)
        return {key: entry.value for key, entry in result.items()}

    def describe_configs(self) -> None:
        assert self.configs(self.topic())["cleanup.policy"] == "delete"

    def alter_configs(self) -> None:
        name = self.topic()
        resource = confluent.ConfigResource("topic", name, set_config={"retention.ms": "1000"})
        self.admin.alter_configs([resource])[resource].result(WITHIN_S)
        assert self.configs(name)["retention.ms"] == "1000"

    def incremental_alter_configs(self) -> None:
        name = self.topic()
        operation = confluent.AlterConfigOpType.APPEND
        entry = confluent.ConfigEntry("cleanup.policy", "compact", incremental_operation=operation)
        resource = confluent.ConfigResource("topic", name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(WITHIN_S)
        assert self.configs(name)["cleanup.policy"] == "delete,compact"

    def elect_leaders(self) -> None:
        partition = confluent_kafka.TopicPartition(self.topic(), 0)
        preferred = confluent_kafka.ElectionType.PREFERRED
        result = self.admin.elect_leaders(preferred, [partition]).result(WITHIN_S)
        (error,) = result.values()
        assert error.code() == 84

    def list_offsets(self) -> None:
        partition = confluent_kafka.TopicPartition(self.topic(), 0)
        future = self.admin.list_offsets({partition: confluent.OffsetSpec.latest()})[partition]
        assert future.result(WITHIN_S).offset == 0

    def delete_records(self) -> None:
        partition = confluent_kafka.TopicPartition(self.topic(), 0, 0)
        result = self.admin.delete_records([partition])[partition].result(WITHIN_S)
        assert result.low_watermark == 0

    def list_groups(self) -> None:
        assert self.admin.list_groups(timeout=WITHIN_S) == []

    def list_consumer_groups(self) -> None:
        result = self.admin.list_consumer_groups().result(WITHIN_S)
        assert (result.valid, result.errors) == ([], [])

    def describe_consumer_groups(self) -> None:
        result = self.admin.describe_consumer_groups(["g"])["g"].result(WITHIN_S)
        assert result.state is confluent_kafka.ConsumerGroupState.DEAD

    def delete_consumer_groups(self) -> None:
        with pytest.raises(KafkaException) as rejected:
            self.admin.delete_consumer_groups(["g"])["g"].result(WITHIN_S)
        assert rejected.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND

    def alter_consumer_group_offsets(self) -> None:
        name = self.topic()
        partitions = [confluent_kafka.TopicPartition(name, 0, 3)]
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(name, partitions)
        self.admin.alter_consumer_group_offsets([wanted])[name].result(WITHIN_S)
        group = confluent_kafka.ConsumerGroupTopicPartitions(name)
        listed = self.admin.list_consumer_group_offsets([group])[name].result(WITHIN_S)
        assert [partition.offset for partition in listed.topic_partitions] == [3]
        self.admin.delete_consumer_groups([name])[name].result(WITHIN_S)

    def list_consumer_group_offsets(self) -> None:
        groups = [confluent_kafka.ConsumerGroupTopicPartitions("g")]
        result = self.admin.list_consumer_group_offsets(groups)["g"].result(WITHIN_S)
        assert result.topic_partitions == []

    def alter_user_scram_credentials(self) -> None:
        user = fresh("user")
        kind = confluent.ScramCredentialInfo(confluent.ScramMechanism.SCRAM_SHA_256, 4096)
        upsertion = confluent.UserScramCredentialUpsertion(user, kind, b"secret")
        self.admin.alter_user_scram_credentials([upsertion])[user].result(WITHIN_S)
        result = self.admin.describe_user_scram_credentials([user])[user].result(WITHIN_S)
        assert [info.iterations for info in result.scram_credential_infos] == [4096]

    def describe_user_scram_credentials(self) -> None:
        with pytest.raises(KafkaException) as rejected:
            self.admin.describe_user_scram_credentials(["missing"])["missing"].result(WITHIN_S)
        assert rejected.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND

    def acl(self, kind: Any) -> Any:
        return kind(
            confluent.ResourceType.TOPIC,
            "t",
            confluent.ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            confluent.AclOperation.READ,
            confluent.AclPermissionType.ALLOW,
        )

    def rejected(self, future: Any) -> None:
        with pytest.raises(KafkaException) as rejected:
            future.result(WITHIN_S)
        assert rejected.value.args[0].code() == KafkaError.SECURITY_DISABLED

    def create_acls(self) -> None:
        acl = self.acl(confluent.AclBinding)
        self.rejected(self.admin.create_acls([acl])[acl])

    def describe_acls(self) -> None:
        # This client returns an empty list instead of SECURITY_DISABLED.
        acls = self.admin.describe_acls(self.acl(confluent.AclBindingFilter)).result(WITHIN_S)
        assert acls == []

    def delete_acls(self) -> None:
        acl = self.acl(confluent.AclBindingFilter)
        self.rejected(self.admin.delete_acls([acl])[acl])
