"""The client meets a NOT_CONTROLLER, a lost response and the death of the controller."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import InvalidPartitionsError

from admin import ensure_topic

pytestmark = pytest.mark.bridgehead(properties={"zookeeper.session.timeout.ms": "2000"})


def ensure(cluster, partitions):
    async def run():
        admin = AIOKafkaAdminClient(
            bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=3000
        )
        await admin.start()
        try:
            await ensure_topic(admin, NewTopic("orders", partitions, 2))
            while not (topics := await admin.list_topics()):  # The broker may not know it yet.
                await asyncio.sleep(0.05)
            return topics
        finally:
            await admin.close()

    return asyncio.run(run())


def test_not_controller_is_repeated(bridgehead_cluster):
    rule = bridgehead_cluster.faults.add("error", error="NOT_CONTROLLER", api="CreateTopics")
    assert ensure(bridgehead_cluster, 3) == ["orders"]
    assert bridgehead_cluster.faults.hits(rule) >= 1


def test_lost_response_is_no_error(bridgehead_cluster):
    rule = bridgehead_cluster.faults.add("close", phase="response", api="CreateTopics")
    assert ensure(bridgehead_cluster, 3) == ["orders"]
    assert bridgehead_cluster.faults.hits(rule) >= 1


def test_topic_is_created_after_the_controller_died(bridgehead_cluster):
    bridgehead_cluster.kill_controller()
    assert ensure(bridgehead_cluster, 3) == ["orders"]


def test_other_errors_are_not_hidden(bridgehead_cluster):
    with pytest.raises(InvalidPartitionsError):
        ensure(bridgehead_cluster, 0)
