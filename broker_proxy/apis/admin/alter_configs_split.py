"""AlterConfigs (33) and IncrementalAlterConfigs (44) on the receiving broker.

The broker rejects malformed resources, changes the levels of its own loggers, and checks BROKER
configs. It forwards TOPIC and CLIENT_METRICS resources, and BROKER resources that pass these checks
(docs/kafka/configs.md#checks-on-the-receiving-broker). As in Kafka, the broker validates the values
of BROKER configs before the controller checks whether the client has the permission ALTER_CONFIGS.

In the drafted dialect (bridgehead.dialect=drafted) the broker itself changes only the levels of its
own loggers, because they are not in ZooKeeper. It forwards all other resources unchecked, and the
controller checks them (KIP-590 §Routing Request Security).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.config_codes import AlterConfigOpType
from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.kafka_wire.messages import alter_configs, incremental_alter_configs
from bridgehead.slices import in_thread, sliced
from broker_proxy.apis.admin.config_ports import ConfigReader
from broker_proxy.apis.admin.logger_levels import LEVELS, ROOT, LoggerLevels
from broker_proxy.client_request import AuthorizeFor, ClientRequest, NeverRespondedError
from cluster_model.configs.broker_configs import CurrentConfig
from cluster_model.configs.broker_configs.dynamic import validate_dynamic_configs
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS
from cluster_model.configs.operations import (
    Operation,
    apply_operations,
    check_operation_types,
    check_shape,
)
from cluster_model.configs.types import ConfigException
from cluster_model.quirks import ALTER_CONFIGS_DUPLICATE_HANGS, NO_QUIRKS, Quirks

# One entry per resource of the request, in order: this broker's result, or None to forward the
# resource.
LocalResults = Sequence[ApiError | None]
_DONE: Final = ApiError(ErrorCode.NONE)
BROKER_LOGGER: Final = 8
_SMALL: Final = 500  # configs of a resource that are checked within a slice


@dataclass(frozen=True, slots=True)
class ConfigChecks:
    """The receiving broker's checks for AlterConfigs and IncrementalAlterConfigs."""

    current: CurrentConfig
    reader: ConfigReader
    loggers: LoggerLevels
    authorize_for: AuthorizeFor

    async def check(
        self, request: ClientRequest, resource: Any, *, incremental: bool, validate_only: bool
    ) -> ApiError | None:
        """Return this broker's result for one resource; None if the controller decides."""
        operations = [
            Operation(
                config.name,
                config.config_operation if incremental else AlterConfigOpType.SET,
                config.value,
            )
            async for config in sliced(resource.configs)
        ]
        try:
            await in_thread(len(operations) > _SMALL, check_shape, operations)
            match resource.resource_type:
                case 2 | 16:  # TOPIC, CLIENT_METRICS
                    return None
                case 4:  # BROKER
                    await self._check_broker(resource, operations, incremental=incremental)
                    return None
                case 8 if incremental:  # BROKER_LOGGER
                    self._change_loggers(request, resource, operations, validate_only)
                    return _DONE
                case other:
                    raise _invalid(f"Unknown resource type {other}")
        except ApiError as rejection:
            return rejection

    async def _check_broker(
        self, resource: Any, operations: Sequence[Operation], *, incremental: bool
    ) -> None:
        current = self.current()
        broker_id = current.static.broker_id
        if resource.resource_name:
            received = _node_id(resource.resource_name)
            if received != broker_id:
                raise _invalid(
                    f"Unexpected broker id, expected {broker_id}, but received {received}"
                )
        stored: Mapping[str, str] = {}
        if incremental:
            await in_thread(len(operations) > _SMALL, check_operation_types, operations)
            entity = str(broker_id) if resource.resource_name else "<default>"
            stored = await self.reader.read_config("brokers", entity)
        large, of_broker = len(operations) > _SMALL, bool(resource.resource_name)
        key_of = BROKER_CONFIGS.get
        wanted = await in_thread(large, apply_operations, stored, operations, key_of)
        try:
            await in_thread(large, validate_dynamic_configs, wanted, current, of_broker=of_broker)
        except ConfigException as rejection:
            raise _invalid(rejection.message) from None

    def _change_loggers(
        self,
        request: ClientRequest,
        resource: Any,
        operations: Sequence[Operation],
        validate_only: bool,
    ) -> None:
        if not self.authorize_for(request)("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        broker_id = self.current().static.broker_id
        if _node_id(resource.resource_name) != broker_id:
            # As in Kafka, the text has the broker's own id in both places.
            raise _invalid(f"Unexpected node id. Expected {broker_id}, but received {broker_id}")
        for operation in operations:
            self._check_logger(operation)
        if validate_only:
            return
        for name, operation_type, value in operations:
            if operation_type == AlterConfigOpType.SET:
                assert value is not None
                self.loggers.set(name, value)
            else:
                self.loggers.unset(name)

    def _check_logger(self, operation: Operation) -> None:
        name, operation_type, value = operation
        match operation_type:
            case AlterConfigOpType.SET:
                self._check_logger_exists(name)
                if value not in LEVELS:
                    text = (
                        f"Cannot set the log level of {name} to {value} as it is not a supported "
                        f"log level. Valid log levels are {', '.join(LEVELS)}"
                    )
                    raise ApiError(ErrorCode.INVALID_CONFIG, text)
            case AlterConfigOpType.DELETE:
                self._check_logger_exists(name)
                if name == ROOT:
                    raise _invalid("Removing the log level of the root logger is not allowed")
            case AlterConfigOpType.APPEND | AlterConfigOpType.SUBTRACT:
                word = AlterConfigOpType(operation_type).name
                raise _invalid(f"{word} operation is not allowed for the BROKER_LOGGER resource")
            case _:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _check_logger_exists(self, name: str) -> None:
        if not self.loggers.exists(name):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def _node_id(name: str) -> int:
    if re.fullmatch(r"[+-]?\d{1,10}", name) and -(2**31) <= int(name) < 2**31:
        return int(name)
    raise _invalid(f"Node id must be an integer, but it is: {name}")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _name_of(resource: Any) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


class _Split:
    """The code that AlterConfigs and IncrementalAlterConfigs share."""

    incremental: ClassVar[bool]
    row: ClassVar[type]
    response: ClassVar[type]

    def __init__(self, checks: ConfigChecks, quirks: Quirks = NO_QUIRKS) -> None:
        self._checks = checks
        self._hangs_on_duplicates = ALTER_CONFIGS_DUPLICATE_HANGS in quirks

    async def split(
        self, request: ClientRequest, message: Any, *, is_wrapped: bool = False
    ) -> tuple[LocalResults, Any | None]:
        loggers = [self._is_logger(resource) for resource in message.resources]
        if is_wrapped and not any(loggers):
            return [None] * len(loggers), message
        counts = Counter(_name_of(resource) for resource in message.resources)
        if self._hangs_on_duplicates and len(counts) < len(message.resources):
            raise NeverRespondedError
        results: list[ApiError | None] = []
        pairs = zip(message.resources, loggers, strict=True)
        async for resource, is_logger in sliced(pairs):
            if is_wrapped and not is_logger:
                results.append(None)
                continue
            if counts[_name_of(resource)] > 1:
                results.append(_invalid("Each resource must appear at most once."))
                continue
            results.append(
                await self._checks.check(
                    request,
                    resource,
                    incremental=self.incremental,
                    validate_only=message.validate_only,
                )
            )
        checked = zip(message.resources, results, strict=True)
        rest = [resource for resource, result in checked if result is None]
        return results, replace(message, resources=rest) if rest else None

    def _is_logger(self, resource: Any) -> bool:
        return self.incremental and resource.resource_type == BROKER_LOGGER

    def merge(
        self, request: ClientRequest, message: Any, local: LocalResults, forwarded: Any | None
    ) -> Any:
        """See SplitApi.merge. Resources without a result get UNKNOWN_SERVER_ERROR."""
        remote = (
            {_name_of(response): response for response in forwarded.responses} if forwarded else {}
        )
        missing = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        rows = []
        for resource, result in zip(message.resources, local, strict=True):
            if result is None and _name_of(resource) in remote:
                rows.append(remote[_name_of(resource)])
                continue
            error = result if result is not None else missing
            rows.append(
                self.row(
                    error_code=error.error,
                    error_message=api_message(error.error, error.message),
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        throttle_time_ms = forwarded.throttle_time_ms if forwarded else 0
        return self.response(throttle_time_ms=throttle_time_ms, responses=rows)


class AlterConfigsSplit(_Split):
    """The receiving broker's part of AlterConfigs."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    incremental = False
    row = alter_configs.AlterConfigsResourceResponse
    response = alter_configs.AlterConfigsResponse


class IncrementalAlterConfigsSplit(_Split):
    """The receiving broker's part of IncrementalAlterConfigs."""

    api_key: ClassVar[ApiKey] = ApiKey.INCREMENTAL_ALTER_CONFIGS
    incremental = True
    row = incremental_alter_configs.AlterConfigsResourceResponse
    response = incremental_alter_configs.IncrementalAlterConfigsResponse
