from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BrokerBatch(_message.Message):
    __slots__ = ("hello", "envelopes", "lowest_unfinished_sequence", "heartbeat", "applied_zxid")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    LOWEST_UNFINISHED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    APPLIED_ZXID_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    envelopes: _containers.RepeatedCompositeFieldContainer[Envelope]
    lowest_unfinished_sequence: int
    heartbeat: bool
    applied_zxid: int
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., envelopes: _Optional[_Iterable[_Union[Envelope, _Mapping]]] = ..., lowest_unfinished_sequence: _Optional[int] = ..., heartbeat: _Optional[bool] = ..., applied_zxid: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("broker_id", "incarnation")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    incarnation: str
    def __init__(self, broker_id: _Optional[int] = ..., incarnation: _Optional[str] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("broker_id", "incarnation", "sequence", "request_header", "request_data", "principal", "client_host", "listener_name", "security_protocol", "dialect", "remaining_ms", "request_id", "attempt", "made_by_broker")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_HEADER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_DATA_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    CLIENT_HOST_FIELD_NUMBER: _ClassVar[int]
    LISTENER_NAME_FIELD_NUMBER: _ClassVar[int]
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_BROKER_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    incarnation: str
    sequence: int
    request_header: bytes
    request_data: bytes
    principal: bytes
    client_host: bytes
    listener_name: str
    security_protocol: str
    dialect: str
    remaining_ms: int
    request_id: str
    attempt: int
    made_by_broker: bool
    def __init__(self, broker_id: _Optional[int] = ..., incarnation: _Optional[str] = ..., sequence: _Optional[int] = ..., request_header: _Optional[bytes] = ..., request_data: _Optional[bytes] = ..., principal: _Optional[bytes] = ..., client_host: _Optional[bytes] = ..., listener_name: _Optional[str] = ..., security_protocol: _Optional[str] = ..., dialect: _Optional[str] = ..., remaining_ms: _Optional[int] = ..., request_id: _Optional[str] = ..., attempt: _Optional[int] = ..., made_by_broker: _Optional[bool] = ...) -> None: ...

class ControllerBatch(_message.Message):
    __slots__ = ("welcome", "replies", "updates", "heartbeat")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    replies: _containers.RepeatedCompositeFieldContainer[EnvelopeReply]
    updates: _containers.RepeatedCompositeFieldContainer[MetadataUpdate]
    heartbeat: bool
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., replies: _Optional[_Iterable[_Union[EnvelopeReply, _Mapping]]] = ..., updates: _Optional[_Iterable[_Union[MetadataUpdate, _Mapping]]] = ..., heartbeat: _Optional[bool] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("apis",)
    APIS_FIELD_NUMBER: _ClassVar[int]
    apis: _containers.RepeatedCompositeFieldContainer[ApiRange]
    def __init__(self, apis: _Optional[_Iterable[_Union[ApiRange, _Mapping]]] = ...) -> None: ...

class ApiRange(_message.Message):
    __slots__ = ("api_key", "min_version", "max_version")
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    api_key: int
    min_version: int
    max_version: int
    def __init__(self, api_key: _Optional[int] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ...) -> None: ...

class EnvelopeReply(_message.Message):
    __slots__ = ("sequence", "error_code", "response_data", "zxid")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_DATA_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    error_code: int
    response_data: bytes
    zxid: int
    def __init__(self, sequence: _Optional[int] = ..., error_code: _Optional[int] = ..., response_data: _Optional[bytes] = ..., zxid: _Optional[int] = ...) -> None: ...

class MetadataUpdate(_message.Message):
    __slots__ = ("controller_epoch", "zxid", "update_metadata", "starts_full_image", "complete", "controller_id", "between_parts")
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_METADATA_FIELD_NUMBER: _ClassVar[int]
    STARTS_FULL_IMAGE_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    BETWEEN_PARTS_FIELD_NUMBER: _ClassVar[int]
    controller_epoch: int
    zxid: int
    update_metadata: bytes
    starts_full_image: bool
    complete: bool
    controller_id: int
    between_parts: bool
    def __init__(self, controller_epoch: _Optional[int] = ..., zxid: _Optional[int] = ..., update_metadata: _Optional[bytes] = ..., starts_full_image: _Optional[bool] = ..., complete: _Optional[bool] = ..., controller_id: _Optional[int] = ..., between_parts: _Optional[bool] = ...) -> None: ...
