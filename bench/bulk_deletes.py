"""DeleteTopics of 1,000 topics in one request, compared with the CreateTopics that created them.

The first figure is the time until the response, which waits until the controller has deleted every
topic. The second figure is the time until no broker lists any of the topics.
"""

from __future__ import annotations

import asyncio
import time

from bench.bulk_creates import create, names
from bench.forwarding import two_addresses
from bench.report import Plan, median, progress, spread
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.asynchronous import AsyncConnection

_DELETE_TOPICS, _METADATA = (20, 6), (3, 12)


async def _delete(addresses: list[str], prefix: str) -> tuple[float, float]:
    """Return the seconds until the response, and until no broker lists a deleted topic."""
    topics = [DeleteTopicState(name=name) for name in names(prefix)]
    connections = [await AsyncConnection.open(address) for address in addresses]
    began = time.perf_counter()
    request = DeleteTopicsRequest(topics=topics, timeout_ms=60_000)
    response = await connections[0].call(*_DELETE_TOPICS, request)
    response_s = time.perf_counter() - began
    if any(topic.error_code for topic in response.responses):
        raise RuntimeError(f"{prefix}: not every topic was deleted")
    for connection in connections:
        while any(
            str(topic.name).startswith(prefix)
            for topic in (await connection.call(*_METADATA, MetadataRequest(topics=None))).topics
        ):
            pass
    gone = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return response_s, gone


def run(plan: Plan) -> list[str]:
    """Alternate creates and deletes; discard the first round."""
    created, deleted = [], []
    with Cluster(brokers=3) as cluster:
        controller, _ = two_addresses(cluster)
        addresses = [controller, *cluster.bootstrap_servers.split(",")]
        for round_ in range(plan.rounds(5) + 1):
            progress(f"bulk deletes: round {round_}" + ("" if round_ else " (warm-up)"))
            created.append(asyncio.run(create(controller, f"our{round_:02d}")))
            deleted.append(asyncio.run(_delete(addresses, f"our{round_:02d}")))
    creates = created[1:]
    responses, gone = ([pair[side] * 1e3 for pair in deleted[1:]] for side in (0, 1))
    ratio = median(responses) / (median(creates) * 1e3)
    return [
        f"deletion takes {ratio:.2f} times as long as creation: {spread(responses, 'ms')} until "
        f"the response ({spread([second * 1e3 for second in creates], 'ms')} to create them)",
        f"{spread(gone, 'ms')} until no broker lists them",
    ]
