"""`AsyncAdminClient`: the calls as coroutines, on the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

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
from bridgehead.admin.driver import Driver
from bridgehead.admin.methods import describe
from bridgehead.admin.requests import Plan
from bridgehead.admin.results import Try

P = ParamSpec("P")
T = TypeVar("T")


def coroutine(
    call: Callable[P, Plan[T]],
) -> Callable[Concatenate[AsyncAdminClient, P], Coroutine[Any, Any, T]]:
    """Turn a call into a coroutine method."""

    async def method(self: AsyncAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(call(*args, **kwargs))

    describe(method, call)
    return method


class AsyncAdminClient:
    """`AdminClient` for asyncio: each call is a coroutine with the same arguments and result.

    `alter_config` is the exception: it returns the result instead of a future.

        async with AsyncAdminClient({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
            await admin.create_topic(NewTopicWithReplication("orders", 3, 3))

    The client belongs to the event loop in which it is first used. Any number of tasks can share
    the client. If a task is cancelled, its call ends, but a request that was already sent may still
    have an effect.

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
        self._driver = Driver(properties, token)
        self._timeout_ms: int | None = None
        self._broker: int | None = None

    async def close(self) -> None:
        """Close the connections; return when they are closed.

        Calls in progress raise ClientClosedError.
        """
        await self._driver.close()

    def pinned_to(self, broker_id: int) -> AsyncAdminClient:
        """Return a client that sends every request to one broker; see AdminClient."""
        return self._variant(_broker=broker_id)

    def with_timeout(self, timeout_ms: int) -> AsyncAdminClient:
        """Return a client whose calls time out after `timeout_ms`; see AdminClient."""
        return self._variant(_timeout_ms=timeout_ms)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    def _variant(self, **changes: int) -> AsyncAdminClient:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    async def _run(self, plan: Plan[T]) -> T:
        self._driver.loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = self._driver.loop.create_future()

        def end(outcome: Try[T]) -> None:
            if future.cancelled():
                return
            if outcome.error is not None:
                future.set_exception(outcome.error)
            else:
                future.set_result(outcome.get())

        number = self._driver.submit(plan, end, self._timeout_ms, self._broker)
        try:
            return await future
        except asyncio.CancelledError:
            self._driver.cancel(number)
            raise

    create_topics = coroutine(topics.create_topics)
    create_topic = coroutine(topics.create_topic)
    delete_topics = coroutine(topics.delete_topics)
    delete_topic = coroutine(topics.delete_topic)
    delete_topics_by_id = coroutine(topics.delete_topics_by_id)
    list_topics = coroutine(topics.list_topics)
    describe_topics = coroutine(topics.describe_topics)
    alter_topics = coroutine(drafted.alter_topics)

    describe_cluster = coroutine(cluster.describe_cluster)
    get_all_broker_versions = coroutine(cluster.get_all_broker_versions)
    describe_features = coroutine(cluster.describe_features)
    update_features = coroutine(cluster.update_features)

    get_all_groups = coroutine(groups.get_all_groups)
    get_group_information = coroutine(groups.get_group_information)
    describe_groups = coroutine(groups.describe_groups)
    delete_groups = coroutine(groups.delete_groups)
    list_group_offsets = coroutine(groups.list_group_offsets)
    alter_group_offsets = coroutine(groups.alter_group_offsets)
    delete_group_offsets = coroutine(groups.delete_group_offsets)

    describe_configs = coroutine(configs.describe_configs)
    alter_configs = coroutine(configs.alter_configs)
    incremental_alter_configs = coroutine(configs.incremental_alter_configs)
    describe_config = coroutine(configs.describe_config)
    alter_config = coroutine(configs.alter_config)

    create_partitions = coroutine(partitions.create_partitions)
    elect_leaders = coroutine(partitions.elect_leaders)
    alter_partition_reassignments = coroutine(partitions.alter_partition_reassignments)
    list_partition_reassignments = coroutine(partitions.list_partition_reassignments)
    wait_for_reassignments = coroutine(partitions.wait_for_reassignments)

    delete_records = coroutine(records.delete_records)
    list_offsets = coroutine(records.list_offsets)
    describe_log_dirs = coroutine(records.describe_log_dirs)
    alter_replica_log_dirs = coroutine(records.alter_replica_log_dirs)

    describe_acls = coroutine(acls.describe_acls)
    create_acls = coroutine(acls.create_acls)
    delete_acls = coroutine(acls.delete_acls)
    list_acls = coroutine(acls.list_acls)
    alter_acls = coroutine(acls.alter_acls)

    describe_client_quotas = coroutine(quotas.describe_client_quotas)
    alter_client_quotas = coroutine(quotas.alter_client_quotas)

    describe_user_scram_credentials = coroutine(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = coroutine(scram.alter_user_scram_credentials)

    create_delegation_token = coroutine(tokens.create_delegation_token)
    renew_delegation_token = coroutine(tokens.renew_delegation_token)
    expire_delegation_token = coroutine(tokens.expire_delegation_token)
    describe_delegation_tokens = coroutine(tokens.describe_delegation_tokens)
