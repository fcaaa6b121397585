"""AlterConfigs (33) and IncrementalAlterConfigs (44) on the receiving broker.

Each resource is judged here first: what is malformed is answered at once, loggers are changed at
once, BROKER values are judged by the broker that they are for; only what is left is forwarded
(kafka-semantics 3.6, first table). BROKER values are judged before anyone asks who may set them,
as in Kafka.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.kafka_wire.messages import alter_configs, incremental_alter_configs
from broker_proxy.apis.base import AuthorizeFor, ClientRequest, NeverAnsweredError
from broker_proxy.apis.config_ports import ConfigReader, CurrentConfig
from broker_proxy.logger_levels import LEVELS, ROOT, LoggerLevels
from cluster_model.broker_configs.dynamic import validate_dynamic_configs
from cluster_model.broker_configs.table import BROKER_CONFIGS
from cluster_model.config_operations import (
    Operation,
    OperationType,
    apply_operations,
    refuse_unknown_operations,
)
from cluster_model.config_types import ConfigException
from cluster_model.quirks import ALTER_CONFIGS_DUPLICATE_HANGS, NO_QUIRKS, Quirks

# Per resource of the request, in its order: what is answered here, or None where it is forwarded.
LocalAnswers = Sequence[ApiError | None]
_DONE: Final = ApiError(ErrorCode.NONE)


@dataclass(frozen=True, slots=True)
class ConfigChecks:
    """What both APIs check on the receiving broker."""

    current: CurrentConfig
    reader: ConfigReader
    loggers: LoggerLevels
    authorize_for: AuthorizeFor

    async def judge(
        self, request: ClientRequest, resource: Any, *, incremental: bool, validate_only: bool
    ) -> ApiError | None:
        """Return the answer of one resource, or None when the controller must have its say."""
        operations = [
            Operation(
                config.name,
                config.config_operation if incremental else OperationType.SET,
                config.value,
            )
            for config in resource.configs
        ]
        try:
            _check_shape(operations)
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
        except ApiError as refusal:
            return refusal

    async def _check_broker(
        self, resource: Any, operations: Sequence[Operation], *, incremental: bool
    ) -> None:
        current = self.current()
        own = current.static.broker_id
        if resource.resource_name:
            received = _node_id(resource.resource_name)
            if received != own:
                raise _invalid(f"Unexpected broker id, expected {own}, but received {received}")
        stored: Mapping[str, str] = {}
        if incremental:
            refuse_unknown_operations(operations)
            entity = str(own) if resource.resource_name else "<default>"
            stored = await self.reader.read_config("brokers", entity)
        wanted = apply_operations(stored, operations, BROKER_CONFIGS.get)
        try:
            validate_dynamic_configs(wanted, current, of_broker=bool(resource.resource_name))
        except ConfigException as refusal:
            raise _invalid(refusal.message) from None

    def _change_loggers(
        self,
        request: ClientRequest,
        resource: Any,
        operations: Sequence[Operation],
        validate_only: bool,
    ) -> None:
        if not self.authorize_for(request)("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        own = self.current().static.broker_id
        if _node_id(resource.resource_name) != own:
            # Kafka's text names its own id twice.
            raise _invalid(f"Unexpected node id. Expected {own}, but received {own}")
        for operation in operations:
            self._check_logger(operation)
        if validate_only:
            return
        for name, operation_type, value in operations:
            if operation_type == OperationType.SET:
                assert value is not None
                self.loggers.set(name, value)
            else:
                self.loggers.unset(name)

    def _check_logger(self, operation: Operation) -> None:
        name, operation_type, value = operation
        match operation_type:
            case OperationType.SET:
                self._check_logger_exists(name)
                if value not in LEVELS:
                    text = (
                        f"Cannot set the log level of {name} to {value} as it is not a supported "
                        f"log level. Valid log levels are {', '.join(LEVELS)}"
                    )
                    raise ApiError(ErrorCode.INVALID_CONFIG, text)
            case OperationType.DELETE:
                self._check_logger_exists(name)
                if name == ROOT:
                    raise _invalid("Removing the log level of the root logger is not allowed")
            case OperationType.APPEND | OperationType.SUBTRACT:
                word = OperationType(operation_type).name
                raise _invalid(f"{word} operation is not allowed for the BROKER_LOGGER resource")
            case _:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _check_logger_exists(self, name: str) -> None:
        if not self.loggers.exists(name):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def _check_shape(operations: Sequence[Operation]) -> None:
    if len({operation.name for operation in operations}) < len(operations):
        raise _invalid("Error due to duplicate config keys")
    nulls = [
        name
        for name, operation_type, value in operations
        if value is None and operation_type != OperationType.DELETE
    ]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _node_id(name: str) -> int:
    if re.fullmatch(r"[+-]?\d{1,10}", name) and -(2**31) <= int(name) < 2**31:
        return int(name)
    raise _invalid(f"Node id must be an integer, but it is: {name}")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _name_of(resource: Any) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


async def _split(
    checks: ConfigChecks, request: ClientRequest, message: Any, *, incremental: bool
) -> tuple[LocalAnswers, Any | None]:
    counts = Counter(_name_of(resource) for resource in message.resources)
    answers: list[ApiError | None] = []
    for resource in message.resources:
        if counts[_name_of(resource)] > 1:
            answers.append(_invalid("Each resource must appear at most once."))
        else:
            answers.append(
                await checks.judge(
                    request,
                    resource,
                    incremental=incremental,
                    validate_only=message.validate_only,
                )
            )
    left = [
        resource
        for resource, answer in zip(message.resources, answers, strict=True)
        if answer is None
    ]
    if not left:
        return answers, None
    return answers, replace(message, resources=left)


def _merge(
    message: Any, local: LocalAnswers, forwarded: Any | None, row: Any, response: Any
) -> Any:
    """Join both in the order of the request; what the controller left out is an error of ours."""
    remote = {_name_of(each): each for each in forwarded.responses} if forwarded else {}
    missing = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    rows = []
    for resource, answer in zip(message.resources, local, strict=True):
        if answer is None and _name_of(resource) in remote:
            rows.append(remote[_name_of(resource)])
            continue
        told = answer if answer is not None else missing
        rows.append(
            row(
                error_code=told.error,
                error_message=api_message(told.error, told.message),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    throttle_time_ms = forwarded.throttle_time_ms if forwarded else 0
    return response(throttle_time_ms=throttle_time_ms, responses=rows)


@dataclass(frozen=True, slots=True)
class AlterConfigsSplit:
    """The receiving broker's part of AlterConfigs; see SplitApi."""

    checks: ConfigChecks
    quirks: Quirks = NO_QUIRKS
    api_key: ClassVar[int] = 33

    async def split(
        self, request: ClientRequest, message: alter_configs.AlterConfigsRequest
    ) -> tuple[LocalAnswers, Any | None]:
        """See SplitApi.split. A resource named twice is refused; a real Kafka never answers."""
        names = [_name_of(resource) for resource in message.resources]
        if len(set(names)) < len(names) and ALTER_CONFIGS_DUPLICATE_HANGS in self.quirks:
            raise NeverAnsweredError
        return await _split(self.checks, request, message, incremental=False)

    def merge(
        self,
        request: ClientRequest,
        message: alter_configs.AlterConfigsRequest,
        local: LocalAnswers,
        forwarded: Any | None,
    ) -> Any:
        """See SplitApi.merge."""
        row = alter_configs.AlterConfigsResourceResponse
        return _merge(message, local, forwarded, row, alter_configs.AlterConfigsResponse)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsSplit:
    """The receiving broker's part of IncrementalAlterConfigs; see SplitApi."""

    checks: ConfigChecks
    api_key: ClassVar[int] = 44

    async def split(
        self,
        request: ClientRequest,
        message: incremental_alter_configs.IncrementalAlterConfigsRequest,
    ) -> tuple[LocalAnswers, Any | None]:
        """See SplitApi.split."""
        return await _split(self.checks, request, message, incremental=True)

    def merge(
        self,
        request: ClientRequest,
        message: incremental_alter_configs.IncrementalAlterConfigsRequest,
        local: LocalAnswers,
        forwarded: Any | None,
    ) -> Any:
        """See SplitApi.merge."""
        return _merge(
            message,
            local,
            forwarded,
            incremental_alter_configs.AlterConfigsResourceResponse,
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        )
