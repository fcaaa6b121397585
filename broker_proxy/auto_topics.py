"""Topics that come to be because a client asked for them (kafka-semantics 4).

Metadata creates missing topics as the client, FindCoordinator creates the internal ones as the
broker; each as a CreateTopics of this broker's own making, on the way that forwarded requests take
(KIP-590 §Internal CreateTopicsRequest Routing). A broker that forwards answers its client at once,
who asks again; the controller's own broker knows the outcome first. Why a creation failed is in
the evidence only: the answers have no room for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.errors import ErrorCode, WireError
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
)
from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.apis.config_ports import CurrentConfig
from broker_proxy.attempt import Step
from broker_proxy.forwarding import Forwarded
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.topic_names import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
)
from event_log.events import TopicsAutoCreated
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
_CREATE_TOPICS: Final = 19
# The draft's broker waits for the controller's answer before its own.
_DRAFTED: Final = "drafted"
# A broker that forwards asks in the newest version, whose mutation quota is strict; the
# controller's own broker in one that is charged and never refused (kafka-semantics 4.3).
_FORWARDED_VERSION: Final = 7
_PERMISSIVE_VERSION: Final = 5
# Names come from clients: beyond this nothing more is asked until some are answered.
IN_FLIGHT_MAX: Final = 10_000
# What is told of a creation that was asked for and whose leader is not known yet.
_COME_BACK: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT}
)


# The way to the controller: ForwardingManager.forward.
Forward = Callable[[ClientRequest, bytes], Awaitable[Forwarded]]


class AutoTopics:
    """Creates missing topics, each name once at a time."""

    def __init__(
        self,
        forward: Forward,
        current: CurrentConfig,
        *,
        waits: Callable[[], bool],
        broker: ClientConnectionInfo,
        broker_id: int,
        log: EventLog,
    ) -> None:
        """`waits` is True while this broker is the controller's own or does not forward.

        Then Kafka creates at once and tells the outcome. `broker` is this broker as an asker.
        """
        self._forward = forward
        self._current = current
        self._waits = waits
        self._broker = broker
        self._broker_id = broker_id
        self._log = log
        self._in_flight: set[str] = set()
        self._tasks: set[asyncio.Task[dict[str, ErrorCode]]] = set()
        self._internal: dict[str, asyncio.Task[dict[str, ErrorCode]]] = {}

    async def create_for_client(
        self, request: ClientRequest, names: Sequence[str]
    ) -> Mapping[str, ErrorCode]:
        """Create topics of legal names that are missing, as the asker of `request` (Metadata).

        Returns what the client is told of each: LEADER_NOT_AVAILABLE means created, come back;
        UNKNOWN_TOPIC_OR_PARTITION means asked for, come back.
        """
        told = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        mine = self._claim(names)
        if mine:
            creation = self._create(request, mine, request.connection, request.header.client_id)
            if self._waits() or request.connection.dialect == _DRAFTED:
                told |= await creation
            else:
                self._start(creation)
        return told

    def create_internal(self, request: ClientRequest, name: str) -> None:
        """Have an internal topic created as this broker; returns at once (FindCoordinator)."""
        mine = self._claim([name])
        if mine:
            broker = replace(self._broker, dialect=request.connection.dialect)
            creation = self._create(request, mine, broker, str(self._broker_id))
            self._internal[name] = self._start(creation)

    async def internal_created(self, name: str) -> bool:
        """Wait for the last creation of an internal topic; False when it failed."""
        creation = self._internal.get(name)
        if creation is None:
            return True  # Some client's Metadata creates it: nothing is known yet.
        return (await asyncio.shield(creation))[name] is ErrorCode.LEADER_NOT_AVAILABLE

    def _claim(self, names: Sequence[str]) -> list[str]:
        room = IN_FLIGHT_MAX - len(self._in_flight)
        mine = [name for name in dict.fromkeys(names) if name not in self._in_flight][:room]
        self._in_flight.update(mine)
        return mine

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
        asker: ClientConnectionInfo,
        client_id: str | None,
    ) -> dict[str, ErrorCode]:
        """Ask for the topics and return what came of each. Never raises."""
        try:
            waits, config = self._waits(), self._current()
            version = _PERMISSIVE_VERSION if waits else _FORWARDED_VERSION
            header = RequestHeader(_CREATE_TOPICS, version, cause.header.correlation_id, client_id)
            request = ClientRequest(
                request_id=f"{cause.request_id}.topics",
                header=header,
                header_bytes=encode_request_header(header),
                body=encode_request(
                    _CREATE_TOPICS,
                    version,
                    CreateTopicsRequest(
                        topics=[topic_to_create(name, config) for name in names],
                        timeout_ms=0 if waits else config.static.int("request.timeout.ms"),
                        # KIP-590; the shipped dialect has no such field, and no such way.
                        bypass_policy=not INTERNAL_TOPICS.isdisjoint(names),
                    ),
                    asker.dialect,
                ),
                connection=asker,
                received_ns=cause.received_ns,
                made_by_broker=True,
            )
            self._log.append(
                TopicsAutoCreated(
                    request_id=request.request_id,
                    cause=cause.request_id,
                    principal=str(asker.principal),
                    topics=names,
                )
            )
            forwarded = await self._forward(request, request.body)
            return _told(names, header, forwarded, asker.dialect)
        except Exception:
            _log.exception("a fault while creating %s", ", ".join(names))
            return dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
        finally:
            self._in_flight.difference_update(names)


def _told(
    names: list[str], header: RequestHeader, forwarded: Forwarded, dialect: str
) -> dict[str, ErrorCode]:
    if forwarded.step is Step.TIMED_OUT:
        return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    told = dict.fromkeys(names, ErrorCode.UNKNOWN_SERVER_ERROR)
    if forwarded.step is not Step.RELAY or forwarded.answer is None:
        return told
    try:
        _, at = decode_response_header(_CREATE_TOPICS, header.api_version, forwarded.answer)
        answer = decode_response(
            _CREATE_TOPICS, header.api_version, forwarded.answer, at, dialect=dialect
        )
    except WireError as wrong:
        _log.warning("the answer to a creation of topics is malformed: %s", wrong)
        return told
    for topic in answer.topics:
        error = ErrorCode(topic.error_code)
        told[topic.name] = ErrorCode.LEADER_NOT_AVAILABLE if error in _COME_BACK else error
        if error not in _COME_BACK:
            _log.info("%s was not created: %s %s", topic.name, error.name, topic.error_message)
    return told


def topic_to_create(name: str, config: EffectiveBrokerConfig) -> CreatableTopic:
    """Return what is asked for: internal topics have configs of their own (kafka-semantics 4.2)."""
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
