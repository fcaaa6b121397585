"""AlterReplicaLogDirs, key 34, versions 0 to 2: moves this broker's replicas.

The broker moves a log before it answers. Without a data plane there is no log to move: the broker
only remembers the new directory for DescribeLogDirs, until it stops. If a request names a partition
more than once, the last entry counts. The response omits topics without partitions.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.log_dirs import LogDirs
from broker_proxy.client_request import AuthorizeFor, ClientRequest

_log = logging.getLogger(__name__)
# To move a log, Kafka copies it to a folder named `TOPIC-PARTITION.`, 32 digits and `-future`. As
# in Kafka, a move is rejected if this name would be too long for the file system (KAFKA-4893).
_FUTURE_SUFFIX: Final = 40
_FILE_NAME_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirs:
    """Answers AlterReplicaLogDirs requests."""

    log_dirs: LogDirs
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.ALTER_REPLICA_LOG_DIRS

    async def handle(self, request: ClientRequest, message: AlterReplicaLogDirsRequest) -> Any:
        """Return a result per partition, grouped by topic."""
        if not self.authorize_for(request)("ALTER", "CLUSTER", "kafka-cluster"):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted: dict[str, dict[int, str]] = {}
        async for directory in sliced(message.dirs):
            async for topic in sliced(directory.topics):
                wanted.setdefault(topic.name, {}).update(
                    dict.fromkeys(topic.partitions, directory.path)
                )
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name=name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(
                            partition_index=partition, error_code=self._move(name, partition, path)
                        )
                        async for partition, path in sliced(partitions.items())
                    ],
                )
                async for name, partitions in sliced(wanted.items())
                if partitions
            ]
        )

    def _move(self, name: str, partition: int, path: str) -> ErrorCode:
        if len(f"{name}-{partition}") + _FUTURE_SUFFIX > _FILE_NAME_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if path not in self.log_dirs.paths:
            return ErrorCode.LOG_DIR_NOT_FOUND
        is_here = self.log_dirs.has_replica(name, partition)
        if is_here is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_here:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        try:
            self.log_dirs.move(name, partition, path)
        except OSError:
            _log.exception("%s-%d cannot be moved to %s", name, partition, path)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE
