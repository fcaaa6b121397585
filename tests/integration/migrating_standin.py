"""A broker that only migrates: what Kafka's KRaft controller needs of a broker, and nothing else.

It replaces `python -m node` in tests of the rehearsal. It registers in ZooKeeper and with the
controller, sends heartbeats, and acknowledges the controller's requests. It serves no client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import struct
import sys
import uuid
from pathlib import Path
from typing import Any

from bridgehead.cluster.properties import parse_properties
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from bridgehead.kafka_wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from bridgehead.kafka_wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from bridgehead.kafka_wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataResponse
from bridgehead.raw_client.asynchronous import AsyncConnection
from cluster_model.inter_broker_protocol import LEVELS, level_of
from cluster_model.znodes.operations import Create
from zookeeper_client.session import ZooKeeperSession

_HEARTBEAT_S = 0.5
_FAR_OFFSET = 1 << 61  # another broker's shutdown waits until the active ones are past it


class Standin:
    """One broker."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.id = int(properties["broker.id"])
        self.properties = properties
        self.addresses = {
            name: address
            for name, _, address in (
                part.partition("://") for part in properties["listeners"].split(",")
            )
        }
        voter = properties["controller.quorum.voters"].split(",")[0]
        self.controller = voter.partition("@")[2]
        self.cluster_id = ""
        self.epoch = -1

    async def serve(self) -> None:
        """Listen at every listener."""
        for address in self.addresses.values():
            host, _, port = address.rpartition(":")
            await asyncio.start_server(self._accept, host, int(port))

    async def register_in_zookeeper(self) -> ZooKeeperSession:
        session = ZooKeeperSession(
            self.properties["zookeeper.connect"],
            session_timeout_ms=6000,
            on_state=lambda _state: None,
        )
        await session.open(30)
        self.cluster_id = json.loads((await session.get("/cluster/id")).data or b"{}")["id"]
        endpoints = [f"{name}://{address}" for name, address in self.addresses.items()]
        protocols = dict.fromkeys(self.addresses, "PLAINTEXT")
        content = {
            "listener_security_protocol_map": protocols,
            "endpoints": endpoints,
            "jmx_port": -1,
            "port": -1,
            "host": None,
            "version": 5,
            "timestamp": "0",
        }
        for parent in ("/brokers", "/brokers/ids"):
            if await session.exists(parent) is None:
                await session.multi([session.encode(Create(parent))])
        registration = Create(
            f"/brokers/ids/{self.id}", json.dumps(content).encode(), ephemeral=True
        )
        await session.multi([session.encode(registration)])
        return session

    async def live(self, stopping: asyncio.Event) -> None:
        """Register with the controller and send heartbeats; leave when `stopping` is set."""
        connection: AsyncConnection | None = None
        directory, incarnation = uuid.uuid4().bytes, uuid.uuid4().bytes
        while True:
            try:
                if connection is None:
                    connection = await AsyncConnection.open(self.controller)
                if self.epoch < 0:
                    request = self._registration(directory, incarnation)
                    response = await connection.call(ApiKey.BROKER_REGISTRATION, 4, request)
                    self.epoch = -1 if response.error_code else response.broker_epoch
                if self.epoch >= 0:
                    beat = BrokerHeartbeatRequest(
                        self.id, self.epoch, _FAR_OFFSET, want_shut_down=stopping.is_set()
                    )
                    response = await connection.call(ApiKey.BROKER_HEARTBEAT, 1, beat)
                    if response.error_code:
                        self.epoch = -1
                    if response.should_shut_down:
                        return
            except (OSError, EOFError):
                connection = None
                if stopping.is_set():
                    return
            if stopping.is_set() and self.epoch < 0:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), 0.1 if self.epoch < 0 else _HEARTBEAT_S)
            if stopping.is_set():
                await asyncio.sleep(0.1)

    def _registration(self, directory: bytes, incarnation: bytes) -> BrokerRegistrationRequest:
        level = level_of(self.properties["inter.broker.protocol.version"])
        assert level is not None
        number = LEVELS.index(level) - LEVELS.index("3.0-IV1") + 1
        listeners = []
        for name, address in self.addresses.items():
            host, _, port = address.rpartition(":")
            listeners.append(Listener(name, host, int(port), 0))
        return BrokerRegistrationRequest(
            self.id,
            self.cluster_id,
            incarnation,
            listeners,
            [Feature("metadata.version", number, number)],
            self.properties.get("broker.rack"),
            True,
            [directory],
        )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                header, at = decode_request_header(request)
                message = decode_request(header.api_key, header.api_version, request, at)
                body = encode_response(header.api_key, header.api_version, _respond(message))
                head = encode_response_header(
                    header.api_key, header.api_version, header.correlation_id
                )
                writer.write(frame(head + body))
        writer.close()


def _respond(message: Any) -> Any:
    match type(message).__name__:
        case "UpdateMetadataRequest":
            return UpdateMetadataResponse()
        case "LeaderAndIsrRequest":
            topics = [
                LeaderAndIsrTopicError(
                    topic.topic_id,
                    [
                        LeaderAndIsrPartitionError(partition_index=partition.partition_index)
                        for partition in topic.partition_states
                    ],
                )
                for topic in message.topic_states
            ]
            return LeaderAndIsrResponse(topics=topics)
        case "StopReplicaRequest":
            errors = [
                StopReplicaPartitionError(topic.topic_name, partition.partition_index)
                for topic in message.topic_states
                for partition in topic.partition_states
            ]
            return StopReplicaResponse(partition_errors=errors)
    raise EOFError


async def _main(options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_reader(sys.stdin.fileno(), lambda: os.read(0, 1) or os._exit(0))
    broker = Standin(parse_properties(options.config.read_text()))
    await broker.serve()
    session = await broker.register_in_zookeeper()
    ready = {"pid": os.getpid(), "listeners": broker.addresses, "metrics_url": ""}
    beside = options.data_dir / "ready.tmp"
    beside.write_text(json.dumps(ready))
    beside.replace(options.data_dir / "ready.json")
    await broker.live(stopping)
    await session.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--log-file")
    asyncio.run(_main(parser.parse_args()))
