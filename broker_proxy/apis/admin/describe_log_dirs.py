"""DescribeLogDirs, key 35, versions 0 to 4: the directories of this broker's replicas.

Without a data plane a replica is an empty log without files, and the disks' sizes are unknown.
The directories are those of the broker's log.dirs. The response omits unknown topics and other
brokers' replicas.

Version notes:
    3: an error for the whole request. 4: total and usable bytes; -1 means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.log_dirs import LogDirs
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.cache import MetadataCache


@dataclass(frozen=True, slots=True)
class DescribeLogDirs:
    """Answers DescribeLogDirs requests."""

    log_dirs: LogDirs
    cache: MetadataCache
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_LOG_DIRS

    async def handle(self, request: ClientRequest, message: DescribeLogDirsRequest) -> Any:
        """Return each directory with the requested replicas; null topics request all replicas."""
        if not self.authorize_for(request)("DESCRIBE", "CLUSTER", "kafka-cluster"):
            return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted: dict[str, set[int]] | None = None
        if message.topics is not None:
            wanted = {}
            async for requested in sliced(message.topics):
                wanted.setdefault(requested.topic, set()).update(requested.partitions)
        results = {}
        for path in self.log_dirs.paths:
            total, usable = self.log_dirs.disk(path)
            results[path] = DescribeLogDirsResult(
                log_dir=path, total_bytes=total, usable_bytes=usable
            )
        async for name in sliced(tuple(self.cache.topics if wanted is None else wanted)):
            here: dict[str, list[DescribeLogDirsPartition]] = {}
            for number, path in self.log_dirs.replicas(name):
                if wanted is None or number in wanted[name]:
                    size = self.log_dirs.size(name, number)
                    partition = DescribeLogDirsPartition(number, size)
                    here.setdefault(path, []).append(partition)
            for path, partitions in here.items():
                topic = DescribeLogDirsTopic(name=name, partitions=partitions)
                results[path].topics.append(topic)
        return DescribeLogDirsResponse(results=list(results.values()))
