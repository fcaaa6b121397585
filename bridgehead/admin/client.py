"""`AdminClient`: blocking calls, from any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Concatenate, ParamSpec, Self, TypeVar

from bridgehead.admin.calls import (
    acls,
    cluster,
    configs,
    drafted,
    groups,
    partitions,
    quotas,
    records,
    scram,
    tokens,
    topics,
)
from bridgehead.admin.methods import describe
from bridgehead.admin.requests import Plan

P = ParamSpec("P")
T = TypeVar("T")


def blocking(call: Callable[P, Plan[T]]) -> Callable[Concatenate[AdminClient, P], T]:
    """Turn a call into a method that returns the result, or raises the call's error."""

    def method(self: AdminClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(call(*args, **kwargs))

    describe(method, call)
    return method


def in_background(call: Callable[P, Plan[T]]) -> Callable[Concatenate[AdminClient, P], Future[T]]:
    """Turn a call into a method that starts it and returns a future."""

    def method(self: AdminClient, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._start(call(*args, **kwargs))

    describe(method, call, "Future[{}]")
    return method


class AdminClient:
    """A client for a cluster's metadata (KIP-117). Any number of threads may share it.

    Calls block, except `alter_config`, which returns a future.

        with AdminClient({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
            admin.create_topic(NewTopicWithReplication("orders", 3, 3))

    The API determines whether a request goes to the controller, to a certain broker or to any
    broker. After a failover, the client finds the new controller. The client resends a request that
    got no response, until `default.api.timeout.ms` (60 s) ends the call.

    Args:
        properties: Kafka's client properties, such as `bootstrap.servers`.
        token: a function that returns the token of an OAUTHBEARER login. The client calls it for
            each connection.

    Raises:
        AdminConfigError: a property is missing or invalid. The client checks this before it opens
            a connection.
    """

    def __init__(
        self, properties: Mapping[str, object], *, token: Callable[[], str] | None = None
    ) -> None:
        from bridgehead.admin.shared_loop import SharedLoop

        self._loop = SharedLoop(properties, token)
        self._timeout_ms: int | None = None
        self._broker: int | None = None

    def close(self) -> None:
        """Close the connections. Calls in progress raise ClientClosedError."""
        self._loop.close()

    def pinned_to(self, broker_id: int) -> AdminClient:
        """Return a client that sends every request to one broker, over the same connections.

        The returned client does not look for the controller. If elements of a request, such as
        topics, fail with NOT_CONTROLLER, the client sends them to the same broker again, until the
        call times out. It does not resend a request to elect leaders, or a request for which the
        top-level error of the response is NOT_CONTROLLER.

        Closing either client closes both.
        """
        return self._variant(_broker=broker_id)

    def with_timeout(self, timeout_ms: int) -> AdminClient:
        """Return a client with the same connections whose calls time out after `timeout_ms`.

        Closing either client closes both.
        """
        return self._variant(_timeout_ms=timeout_ms)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def _variant(self, **changes: int) -> AdminClient:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    def _start(self, plan: Plan[T]) -> Future[T]:
        return self._loop.start(plan, self._timeout_ms, self._broker)

    def _run(self, plan: Plan[T]) -> T:
        result: T = self._loop.run(plan, self._timeout_ms, self._broker)
        return result

    create_topics = blocking(topics.create_topics)
    create_topic = blocking(topics.create_topic)
    delete_topics = blocking(topics.delete_topics)
    delete_topic = blocking(topics.delete_topic)
    delete_topics_by_id = blocking(topics.delete_topics_by_id)
    list_topics = blocking(topics.list_topics)
    describe_topics = blocking(topics.describe_topics)
    alter_topics = blocking(drafted.alter_topics)

    describe_cluster = blocking(cluster.describe_cluster)
    get_all_broker_versions = blocking(cluster.get_all_broker_versions)
    describe_features = blocking(cluster.describe_features)
    update_features = blocking(cluster.update_features)

    get_all_groups = blocking(groups.get_all_groups)
    get_group_information = blocking(groups.get_group_information)
    describe_groups = blocking(groups.describe_groups)
    delete_groups = blocking(groups.delete_groups)
    list_group_offsets = blocking(groups.list_group_offsets)
    alter_group_offsets = blocking(groups.alter_group_offsets)
    delete_group_offsets = blocking(groups.delete_group_offsets)

    describe_configs = blocking(configs.describe_configs)
    alter_configs = blocking(configs.alter_configs)
    incremental_alter_configs = blocking(configs.incremental_alter_configs)
    describe_config = blocking(configs.describe_config)
    alter_config = in_background(configs.alter_config)

    create_partitions = blocking(partitions.create_partitions)
    elect_leaders = blocking(partitions.elect_leaders)
    alter_partition_reassignments = blocking(partitions.alter_partition_reassignments)
    list_partition_reassignments = blocking(partitions.list_partition_reassignments)
    wait_for_reassignments = blocking(partitions.wait_for_reassignments)

    delete_records = blocking(records.delete_records)
    list_offsets = blocking(records.list_offsets)
    describe_log_dirs = blocking(records.describe_log_dirs)
    alter_replica_log_dirs = blocking(records.alter_replica_log_dirs)

    describe_acls = blocking(acls.describe_acls)
    create_acls = blocking(acls.create_acls)
    delete_acls = blocking(acls.delete_acls)
    list_acls = blocking(acls.list_acls)
    alter_acls = blocking(acls.alter_acls)

    describe_client_quotas = blocking(quotas.describe_client_quotas)
    alter_client_quotas = blocking(quotas.alter_client_quotas)

    describe_user_scram_credentials = blocking(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(scram.alter_user_scram_credentials)

    create_delegation_token = blocking(tokens.create_delegation_token)
    renew_delegation_token = blocking(tokens.renew_delegation_token)
    expire_delegation_token = blocking(tokens.expire_delegation_token)
    describe_delegation_tokens = blocking(tokens.describe_delegation_tokens)
