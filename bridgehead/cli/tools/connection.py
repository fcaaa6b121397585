"""The client of a tool: its brokers, its errors in Kafka's words, and notes while it waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bridgehead.admin import AdminClient, AdminError, KafkaError, read_client_properties
from bridgehead.cli.options import say_on_stderr
from bridgehead.kafka_wire.errors import ErrorCode

PROGRESS_S: Final = 5.0
# Kafka's exceptions that are not named after their error code.
_EXCEPTIONS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
}


@contextmanager
def connect(
    servers: str | None, config_file: str | None, data_dir: Path, defaults: Mapping[str, str]
) -> Iterator[AdminClient]:
    """Yield a client; until the command ends, print every five seconds how long it has waited.

    Raises:
        AdminError: the properties are invalid.
        ClusterError: no server is named, and no cluster runs in `data_dir`.
    """
    properties = {**defaults, **(read_client_properties(config_file) if config_file else {})}
    if servers is None and "bootstrap.servers" not in properties:
        servers = _running_cluster(data_dir)
    if servers is not None:
        properties["bootstrap.servers"] = servers
    with AdminClient(properties) as admin, _progress(properties["bootstrap.servers"]):
        yield admin


def _running_cluster(data_dir: Path) -> str:
    from bridgehead.cluster.client import ControlClient
    from bridgehead.cluster.data_directory import DataDirectory, read_json
    from bridgehead.cluster.errors import ClusterError

    directory = DataDirectory(data_dir)
    if not directory.is_claimed():
        raise ClusterError(
            f"No cluster is running in {directory.root}: start one with `bridgehead up`, or name "
            "a broker with --bootstrap-server."
        )
    ControlClient(data_dir).status()  # raises if the cluster is not ready
    document = read_json(directory.cluster_json) or {}
    return str(document["bootstrap_servers"])


@contextmanager
def _progress(servers: str) -> Iterator[None]:
    ended = threading.Event()

    def report() -> None:
        waited = 0.0
        while not ended.wait(PROGRESS_S):
            waited += PROGRESS_S
            say_on_stderr(f"Waiting for {servers} for {waited:.0f} s ...")

    thread = threading.Thread(target=report, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def java_name(code: ErrorCode) -> str:
    """Return the class of Kafka's exception for an error code.

    >>> java_name(ErrorCode.OFFSET_OUT_OF_RANGE)
    'org.apache.kafka.common.errors.OffsetOutOfRangeException'
    """
    words = "".join(word.capitalize() for word in code.name.split("_"))
    name = _EXCEPTIONS.get(code, words.removesuffix("Exception") + "Exception")
    return f"org.apache.kafka.common.errors.{name}"


def java_text(error: AdminError) -> str:
    """Return an error as Kafka's tools print an exception that they did not expect."""
    if isinstance(error, KafkaError):
        return f"{java_name(error.code)}: {error}"
    return str(error)
