"""Automatic creation of topics (docs/kafka/topics.md#automatic-creation).

Metadata creates missing topics with the client's principal; FindCoordinator creates internal topics
with the broker's principal. For each creation the broker sends a CreateTopics request, which is
forwarded like a client's request (KIP-590 §Internal CreateTopicsRequest Routing). A broker below
the bridge release executes this request itself (KIP-590 §Compatibility). A forwarding broker
answers its client without waiting for the controller, except in the drafted dialect. For Metadata,
the controller's own broker and a broker that does not forward wait for the outcome. If a creation
fails, the error message is in the log: the client's response has no field for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode, WireError
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
)
from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.controller_requests import (
    Forward,
    WriteDirectly,
    broker_request,
    response_of,
)
from broker_proxy.forwarding.manager import Forwarded
from broker_proxy.forwarding.retry import NextStep
from cluster_model.client import Client
from cluster_model.configs.broker_configs import CurrentConfig, EffectiveBrokerConfig
from cluster_model.topic_names import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
)
from event_log.events import TopicsAutoCreated
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# In the drafted dialect (KIP-590) the broker waits for the controller's response.
_DRAFTED: Final = "drafted"
# A forwarding broker sends the newest version: the controller mutation quota can reject such a
# request. If `waits` is True, the broker sends an older version: the quota counts such a request
# but never rejects it (docs/kafka/topics.md#steps-of-an-automatic-creation).
_FORWARDED_VERSION: Final = 7
_PERMISSIVE_VERSION: Final = 5
# Bounds concurrent creations, because clients choose the names.
IN_FLIGHT_MAX: Final = 10_000
# After these error codes of CreateTopics the topic exists or may soon exist.
_CREATED_OR_PENDING: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT}
)


class AutoTopics:
    """Creates missing topics. At any time at most one creation per name is in flight."""

    def __init__(
        self,
        forward: Forward,
        current: CurrentConfig,
        *,
        waits: Callable[[], bool],
        write_directly: WriteDirectly | None = None,
        broker: Client,
        log: EventLog,
    ) -> None:
        """`waits`: whether this broker waits for the outcome before it answers its client.

        As in Kafka, the controller's own broker and a broker that does not forward wait.
        With `write_directly`, this broker is below the bridge release: it forwards nothing.
        `broker` is this broker as the client of its own requests.
        """
        self._forward = forward
        self._current = current
        self._waits = waits
        self._write_directly = write_directly
        self._broker = broker
        self._log = log
        self._in_flight: set[str] = set()
        self._tasks: set[asyncio.Task[dict[str, ErrorCode]]] = set()
        self._internal: dict[str, asyncio.Task[dict[str, ErrorCode]]] = {}

    async def create_for_client(
        self, request: ClientRequest, names: Sequence[str]
    ) -> Mapping[str, ErrorCode]:
        """Create missing topics as the client's principal, for Metadata. The names are legal.

        Returns an error code per name: LEADER_NOT_AVAILABLE if the topic was created, existed or
        may soon exist; UNKNOWN_TOPIC_OR_PARTITION if the outcome is not known; otherwise the error
        that prevented the creation. The client retries after the first two.
        """
        errors = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        claimed = self._claim(names)
        if claimed:
            creation = self._create(request, claimed, request.client)
            if self._waits() or request.client.dialect == _DRAFTED:
                errors |= await creation
            else:
                self._start(creation)
        return errors

    def create_internal(self, request: ClientRequest, name: str) -> None:
        """Start to create an internal topic as this broker's principal, for FindCoordinator."""
        claimed = self._claim([name])
        if claimed:
            broker = replace(self._broker, dialect=request.client.dialect)
            creation = self._create(request, claimed, broker)
            self._internal[name] = self._start(creation)

    async def internal_created(self, name: str) -> bool:
        """Wait for the latest creation of an internal topic; False when it failed."""
        creation = self._internal.get(name)
        if creation is None:
            return True  # A Metadata request is creating the topic: the outcome is not known yet.
        return (await asyncio.shield(creation))[name] is ErrorCode.LEADER_NOT_AVAILABLE

    def _claim(self, names: Sequence[str]) -> list[str]:
        room = IN_FLIGHT_MAX - len(self._in_flight)
        claimed = [name for name in dict.fromkeys(names) if name not in self._in_flight][:room]
        self._in_flight.update(claimed)
        return claimed

    def _start(
        self, creation: Coroutine[Any, Any, dict[str, ErrorCode]]
    ) -> asyncio.Task[dict[str, ErrorCode]]:
        task = asyncio.create_task(creation)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _create(
        self,
        cause: ClientRequest,
        names: list[str],
        client: Client,
    ) -> dict[str, ErrorCode]:
        """Create the topics and return an error per name. Never raises."""
        try:
            waits, config = self._waits(), self._current()
            version = _PERMISSIVE_VERSION if waits else _FORWARDED_VERSION
            header = RequestHeader(
                ApiKey.CREATE_TOPICS, version, cause.header.correlation_id, client.client_id
            )
            message = CreateTopicsRequest(
                topics=[topic_to_create(name, config) for name in names],
                timeout_ms=0 if waits else config.static.int("request.timeout.ms"),
                # Only the drafted dialect (KIP-590) has this field.
                bypass_policy=client.dialect == _DRAFTED and not INTERNAL_TOPICS.isdisjoint(names),
            )
            request_id = f"{cause.request_id}.topics"
            request = broker_request(
                request_id,
                header,
                message,
                client,
                cause=cause,
                is_as_broker=client is not cause.client,
            )
            self._log.append(
                TopicsAutoCreated(
                    request_id=request.request_id,
                    cause=cause.request_id,
                    principal=str(client.principal),
                    topics=names,
                )
            )
            if self._write_directly is not None:
                return await _write_directly(self._write_directly, names, request, message)
            forwarded = await self._forward(request, request.body)
            return _errors(names, request, forwarded)
        except Exception:
            _log.exception("creating %s failed unexpectedly", ", ".join(names))
            return dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
        finally:
            self._in_flight.difference_update(names)


async def _write_directly(
    write: WriteDirectly, names: list[str], request: ClientRequest, message: CreateTopicsRequest
) -> dict[str, ErrorCode]:
    try:
        response, _ = await write(request, message)
    except ApiError as error:
        if error.error is not ErrorCode.REQUEST_TIMED_OUT:
            raise
        return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _errors_of(response)


def _errors(names: list[str], request: ClientRequest, forwarded: Forwarded) -> dict[str, ErrorCode]:
    if forwarded.step is NextStep.TIMED_OUT:
        return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    errors = dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        response = response_of(request, forwarded)
    except WireError as wrong:
        _log.warning("malformed response to an automatic CreateTopics: %s", wrong)
        return errors
    return errors if response is None else errors | _errors_of(response)


def _errors_of(response: Any) -> dict[str, ErrorCode]:
    """Return the error for the client of each topic in a CreateTopicsResponse."""
    errors: dict[str, ErrorCode] = {}
    for topic in response.topics:
        error = ErrorCode(topic.error_code)
        errors[topic.name] = (
            ErrorCode.LEADER_NOT_AVAILABLE if error in _CREATED_OR_PENDING else error
        )
        if error not in _CREATED_OR_PENDING:
            _log.info("%s was not created: %s %s", topic.name, error.name, topic.error_message)
    return errors


def topic_to_create(name: str, config: EffectiveBrokerConfig) -> CreatableTopic:
    """Return the topic to create; internal topics have their own configs (docs/kafka/topics.md)."""
    if name == GROUP_METADATA_TOPIC:
        return _creatable(
            name,
            config.value("offsets.topic.num.partitions"),
            config.value("offsets.topic.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": config.value("offsets.topic.segment.bytes"),
            },
        )
    if name == TRANSACTION_STATE_TOPIC:
        return _creatable(
            name,
            config.value("transaction.state.log.num.partitions"),
            config.value("transaction.state.log.replication.factor"),
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": config.value("transaction.state.log.min.isr"),
                "segment.bytes": config.value("transaction.state.log.segment.bytes"),
            },
        )
    return _creatable(
        name, config.value("num.partitions"), config.value("default.replication.factor"), {}
    )


def _creatable(
    name: str, partitions: object, replicas: object, configs: Mapping[str, object]
) -> CreatableTopic:
    assert isinstance(partitions, int)
    assert isinstance(replicas, int)
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=str(configs[key])) for key in configs],
    )
