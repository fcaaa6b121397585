"""Clients at all brokers change the same topic's configs and ACLs; no change may be lost.

Each client appends its own entries to a list config and creates its own ACLs. To execute a change,
the controller reads the topic's configs or ACLs, changes them and writes them back. So one change
could undo another.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.describe_acls import DescribeAclsRequest
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.workload import UNKNOWN_OUTCOMES, Place, Workload, pauses
from chaos.workloads.topics import addresses, creation

_NONE: Final = 0
_TOPIC, _LITERAL, _ANY, _READ, _ALLOW, _APPEND = 2, 3, 1, 3, 3, 2
_CONFIG: Final = "leader.replication.throttled.replicas"  # a list of <partition>:<broker>
_CHANGES_EACH: Final = 4
_AGREED_WITHIN_S: Final = 60.0
_RETRY_S: Final = 0.05


@dataclass(slots=True)
class _Entries:
    """The entries of one list: those that were sent, and those that were acknowledged."""

    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)

    def wrong(self, stored: list[str]) -> bool:
        """Return whether an entry is lost, occurs twice or was never sent."""
        distinct = set(stored)
        return len(distinct) < len(stored) or not self.acknowledged <= distinct <= self.sent


class OneObject:
    """The load. In each round all clients change one new topic."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._addresses = addresses(place)
        self._stopped = False
        self._configs: dict[str, _Entries] = {}  # by topic
        self._hosts: dict[str, _Entries] = {}  # of ACLs, by topic
        self._surprises: list[str] = []

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        clients = {
            broker: ClusterClient(self._addresses, f"c{broker}") for broker in self._place.brokers
        }
        first = self._place.brokers[0]
        for number in itertools.takewhile(lambda _: not self._stopped, itertools.count()):
            name = f"shared-{number}"
            request = creation([name])
            if await self._send(clients[first], first, ApiKey.CREATE_TOPICS, 4, request, name):
                self._configs[name], self._hosts[name] = _Entries(), _Entries()
                await asyncio.gather(*(self._change(c, at, name) for at, c in clients.items()))
        for client in clients.values():
            client.close()

    async def _change(self, client: ClusterClient, broker: int, name: str) -> None:
        for number in range(_CHANGES_EACH):
            entry, host = f"{number}:{broker}", f"10.0.{broker}.{number}"
            config = AlterableConfig(_CONFIG, _APPEND, entry)
            alter = IncrementalAlterConfigsRequest([AlterConfigsResource(_TOPIC, name, [config])])
            acl = AclCreation(_TOPIC, name, _LITERAL, "User:reader", host, _READ, _ALLOW)
            key, element = ApiKey.INCREMENTAL_ALTER_CONFIGS, f"{_TOPIC}:{name}"
            self._configs[name].sent.add(entry)
            if await self._send(client, broker, key, 1, alter, element):
                self._configs[name].acknowledged.add(entry)
            key, element = ApiKey.CREATE_ACLS, f"TOPIC:LITERAL:{name}"
            self._hosts[name].sent.add(host)
            if await self._send(client, broker, key, 1, CreateAclsRequest([acl]), element):
                self._hosts[name].acknowledged.add(host)

    async def _send(
        self,
        client: ClusterClient,
        broker: int,
        key: ApiKey,
        version: int,
        message: Any,
        element: str,
    ) -> bool:
        """Send one request; return whether it was acknowledged."""
        code = -1
        with self._place.history.operation(key, [element]) as operation:
            try:
                response = await client.call(broker, key, version, message)
                code = int(_results(key, response)[0].error_code)
                operation.completed({element: code})
            except (OSError, EOFError):  # The broker is gone, and the outcome is unknown.
                await asyncio.sleep(_RETRY_S)
        if code not in (_NONE, *UNKNOWN_OUTCOMES):
            self._surprises.append(f"{key.name} of {element} was rejected with {code}")
        self._place.progress.add(code == _NONE)
        return code == _NONE

    async def wrong(self) -> list[str]:
        different = await asyncio.gather(
            *(self._differences(broker) for broker in self._place.brokers)
        )
        return [*self._surprises, *itertools.chain.from_iterable(different)]

    async def _differences(self, broker: int) -> list[str]:
        """Wait until a broker describes what the clients wrote; return what still differs."""
        client = ClusterClient(self._addresses, "final-read")
        deadline_s = time.monotonic() + _AGREED_WITHIN_S
        pause = pauses()
        while True:
            configs = await self._described_configs(client, broker)
            hosts = await _described_hosts(client, broker)
            wrong = [
                f"broker {broker} describes changes of {name} that are not those of the clients"
                for described, entries in ((configs, self._configs), (hosts, self._hosts))
                for name, written in entries.items()
                if written.wrong(described.get(name, []))
            ]
            if not wrong or time.monotonic() > deadline_s:
                client.close()
                return wrong
            await asyncio.sleep(next(pause))

    async def _described_configs(
        self, client: ClusterClient, broker: int
    ) -> Mapping[str, list[str]]:
        wanted = [DescribeConfigsResource(_TOPIC, name, [_CONFIG]) for name in self._configs]
        request = DescribeConfigsRequest(wanted)
        response = await client.call(broker, ApiKey.DESCRIBE_CONFIGS, 1, request)
        # A broker that does not know the topic yet answers with an error and without configs.
        return {
            result.resource_name: result.configs[0].value.split(",")
            if result.configs and result.configs[0].value
            else []
            for result in response.results
        }


def _results(key: ApiKey, response: Any) -> Any:
    if key is ApiKey.CREATE_TOPICS:
        return response.topics
    return response.results if key is ApiKey.CREATE_ACLS else response.responses


async def _described_hosts(client: ClusterClient, broker: int) -> Mapping[str, list[str]]:
    every = DescribeAclsRequest(_TOPIC, None, _LITERAL, None, None, _ANY, _ANY)
    response = await client.call(broker, ApiKey.DESCRIBE_ACLS, 1, every)
    return {
        resource.resource_name: [acl.host for acl in resource.acls]
        for resource in response.resources
    }


ONE_OBJECT = Workload(
    name="one_object",
    does="In each round, clients at all brokers append to a list config of the same topic, and "
    "create ACLs on this topic.",
    start=OneObject,
    properties={
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        # Without TLS, clients and simulated brokers are anonymous.
        "super.users": "User:ANONYMOUS;User:broker",
    },
)
