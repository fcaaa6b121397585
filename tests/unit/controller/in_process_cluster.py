"""Three brokers and a controller in one object, without processes, I/O or waiting.

All of them share one image. A request takes the same path as on a cluster: the receiving broker
answers requests of local APIs, and its own part of requests that change configs. The controller
decides the rest, and its records are applied before the response.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from unittest.mock import Mock

from immutables import Map

from bridgehead.kafka_wire.apis import API_SPECS, Route, error_response
from bridgehead.kafka_wire.codec import decode_request, encode_request, encode_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from bridgehead.raw_client.blocking import CLOSED
from broker_proxy.apis.admin.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.admin.api_versions import ApiVersions
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.admin.describe_acls import DescribeAcls
from broker_proxy.apis.admin.describe_client_quotas import DescribeClientQuotas
from broker_proxy.apis.admin.describe_cluster import DescribeCluster
from broker_proxy.apis.admin.describe_configs import DescribeConfigs
from broker_proxy.apis.admin.describe_delegation_token import DescribeDelegationToken
from broker_proxy.apis.admin.describe_user_scram_credentials import DescribeUserScramCredentials
from broker_proxy.apis.admin.logger_levels import LoggerLevels
from broker_proxy.apis.admin.metadata import Metadata
from broker_proxy.apis.base import LocalApi, SplitApi
from broker_proxy.apis.records.delete_records import DeleteRecords
from broker_proxy.client_request import ClientRequest
from broker_proxy.metadata.cache import MetadataCache
from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.direct_writes import WRITTEN_BY_BROKERS
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from cluster_model.records import ConfigResource, Record, TopicRemovalRecord
from cluster_model.update_metadata import full_parts
from controller.apis import build_admin_apis
from controller.apis.base import Results, WaitFor
from controller.loop.background_jobs import complete_reassignments
from envelope.messages import MetadataUpdate
from node.assembly.authorization import Authorization
from node.assembly.parts import api_settings
from node.config import read_config
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.controller.request_contexts import a_context

BROKERS: Final = (1, 2, 3)
API_VERSIONS: Final = 18
_UPDATE_METADATA: Final = (6, 8)


class _Receiver:
    """What the APIs of one broker need. The broker's dynamic configs are in the shared image."""

    def __init__(self, cluster: InProcessCluster, broker_id: int, properties: str) -> None:
        self._cluster = cluster
        self.config = read_config(
            f"{properties}\nbroker.id={broker_id}\nzookeeper.connect=127.0.0.1:2181\n"
        )
        self.local: dict[int, LocalApi] = {}
        self.split: dict[int, SplitApi] = {}

    def current(self) -> EffectiveBrokerConfig:
        """Return the broker's effective configs."""
        image, broker_id = self._cluster.image, str(self.config.broker_id)
        return EffectiveBrokerConfig.of(
            self.config.broker,
            image.config("brokers", "<default>"),
            image.config("brokers", broker_id),
        )

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        return self._cluster.image.config(entity_type, entity_name)

    async def read_entities(self, entity_type: str) -> Mapping[ConfigResource, Mapping[str, str]]:
        configs = self._cluster.image.configs.items()
        return dict(sorted((r, c) for r, c in configs if r.entity_type == entity_type))

    def has_topic(self, name: str) -> bool:
        return name in self._cluster.image.topics


class InProcessCluster:
    """Broker 1 is the active controller. Every broker has these `properties`.

    If `forwards` is false, brokers 2 and 3 do not forward writes. They answer NOT_CONTROLLER, but
    execute the APIs in WRITTEN_BY_BROKERS.
    """

    def __init__(self, properties: str, *, forwards: bool = True) -> None:
        self._forwards = forwards
        brokers = Map(
            {i: BrokerRegistration(i, 100 + i, _endpoints(i), f"rack-{i}") for i in BROKERS}
        )
        self.image = MetadataImage(zxid=1, controller_epoch=1, brokers=brokers)
        self._receivers = {i: _Receiver(self, i, properties) for i in BROKERS}
        controller = self._receivers[1]
        self._admin = build_admin_apis(api_settings(controller.config, controller.current))
        self._authorization = Authorization(
            controller.config.authorizer, lambda: self.image.acls, Mock()
        )
        self._cache = MetadataCache(lambda: None)
        self._random = random.Random(7)
        self._now_ms = 1_000_000
        for receiver in self._receivers.values():
            self._add_apis(receiver)
        self._publish()

    def _add_apis(self, receiver: _Receiver) -> None:
        config, authorization = receiver.config, self._authorization
        may = authorization.for_client
        checks = ConfigChecks(receiver.current, receiver, LoggerLevels(), may)
        splits = (AlterConfigsSplit(checks), IncrementalAlterConfigsSplit(checks))
        receiver.split = {api.api_key: api for api in splits}
        view = ClusterView(
            self._cache,
            broker_id=config.broker_id,
            cluster_id="flEykXXSSGupJnOY6sVHZA",
            named_controllers={},
            choose=lambda count: 0,
        )
        tokens = TokenCache(
            config.token_secret, new_salt=random.randbytes, active_tokens=lambda: self.image.tokens
        )
        local: tuple[LocalApi, ...] = (
            Metadata(view, authorize_for=authorization.of_clients),
            DescribeCluster(view, authorize_for=authorization.of_clients),
            DescribeConfigs(receiver.current, receiver, receiver, LoggerLevels(), may),
            DescribeAcls(lambda: self.image.acls, may, authorization.is_on),
            DescribeClientQuotas(receiver, may),
            DescribeUserScramCredentials(receiver, may),
            DescribeDelegationToken(tokens, may),
            DeleteRecords(config.broker_id, self._cache, receiver.current, receiver, may),
        )
        receiver.local = {api.api_key: api for api in local}
        served = API_SPECS.keys() & {API_VERSIONS, *receiver.local, *self._admin}
        receiver.local[API_VERSIONS] = ApiVersions(
            {"shipped": dict.fromkeys(served, Route.LOCAL)}, lambda: 0
        )

    def replay(self, *records: Record) -> None:
        """Put records into the image."""
        self.image = self.image.replay(records)

    def call(self, broker: int, user: str | None, frame: bytes) -> bytes | str:
        """Return the response to a client's request as bytes without the size prefix, or CLOSED."""
        try:
            header, at = decode_request_header(frame)
            key, version = header.api_key, header.api_version
            message = decode_request(key, version, frame, at)
            check_request(key, version, message)
        except WireError:
            return CLOSED
        request = a_request(
            key,
            version,
            client_id=header.client_id,
            principal=KafkaPrincipal("User", user) if user else ANONYMOUS,
            security_protocol="SASL_PLAINTEXT" if user else "PLAINTEXT",
        )
        try:
            response = asyncio.run(self._respond(self._receivers[broker], request, message))
        except ApiError as error:
            response = error_response(key, message, version, error.error, error.message)
        if not isinstance(response, bytes):
            response = encode_response(key, version, response)
        return encode_response_header(key, version, header.correlation_id) + response

    async def _respond(self, receiver: _Receiver, request: ClientRequest, message: Any) -> Any:
        key = request.header.api_key
        not_controller = receiver.config.broker_id != 1 and key not in WRITTEN_BY_BROKERS
        if key in receiver.local:
            return await receiver.local[key].handle(request, message)
        if not_controller and not self._forwards:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if key not in receiver.split:
            return self._write(request, message)
        split = receiver.split[key]
        local, left = await split.split(request, message)
        forwarded = None if left is None else self._write(request, left)
        return split.merge(request, message, local, forwarded)

    def _write(self, request: ClientRequest, message: Any) -> Any:
        """Decide a request and apply its records. Deletions and reassignments complete at once."""
        key, version, client = request.header.api_key, request.header.api_version, request.client
        self._now_ms += 100
        context = a_context(
            key,
            version,
            principal=client.principal,
            security_protocol=client.security_protocol,
            authorize=self._authorization.bind(client.requester(key, version), self.image.acls),
            random=self._random,
            now_ms=self._now_ms,
        )
        api = self._admin[key]
        decision = api.decide(context, message, self.image, {})
        outcomes = {decided.element: decided.outcome for decided in decision.elements}
        for decided in decision.elements:
            self.replay(*decided.records, *decided.following)
        waits = decision.wait.condition is not WaitFor.NOTHING and decision.wait.timeout_ms <= 0
        late = frozenset(e for e in decision.wait.topics if waits and outcomes[e].succeeded)
        self.replay(*(TopicRemovalRecord(name) for name in self.image.deletions))
        response = api.response(context, message, Results(outcomes, self.image, late))
        for records in complete_reassignments(lambda: self.image, sorted(self.image.topics)):
            self.replay(*records)
        self._publish()
        return response

    def _publish(self) -> None:
        self.image = replace(self.image, zxid=self.image.zxid + 1)
        parts = list(full_parts(self.image, 1))
        for number, part in enumerate(parts):
            body = encode_request(*_UPDATE_METADATA, part)
            last = number == len(parts) - 1
            update = MetadataUpdate(1, 1, self.image.zxid, body, number == 0, last)
            assert self._cache.apply(update)


def _endpoints(broker_id: int) -> tuple[Endpoint, ...]:
    names = ("PLAINTEXT", "SASL_PLAINTEXT")
    return tuple(Endpoint(n, n, "127.0.0.1", 9091 + broker_id) for n in names)
