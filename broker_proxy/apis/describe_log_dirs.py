"""DescribeLogDirs, key 35, versions 0 to 4: every broker speaks of its own replicas.

There is no data plane: a replica is an empty log without files. The directories named are those
of the broker's properties, and what they could hold is not known, since none of them is touched.
Unknown topics and replicas of others are left out.

Version notes:
    3: an error of the whole request. 4: total and usable bytes; -1 says that they are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.log_dirs import LogDirs
from broker_proxy.metadata_cache import MetadataCache


@dataclass(frozen=True, slots=True)
class DescribeLogDirs:
    """See LocalApi."""

    log_dirs: LogDirs
    cache: MetadataCache
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 35

    async def answer(self, request: ClientRequest, message: DescribeLogDirsRequest) -> Any:
        """Return each directory with the replicas asked for; a topics list of null asks for all."""
        if not self.authorize_for(request)("DESCRIBE", "CLUSTER", "kafka-cluster"):
            return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted: dict[str, set[int]] | None = None
        if message.topics is not None:
            wanted = {}
            for asked in message.topics:
                wanted.setdefault(asked.topic, set()).update(asked.partitions)
        results = {path: DescribeLogDirsResult(log_dir=path) for path in self.log_dirs.paths}
        for name in self.cache.topics if wanted is None else wanted:
            here: dict[str, list[DescribeLogDirsPartition]] = {}
            for number, path in self.log_dirs.replicas(name):
                if wanted is None or number in wanted[name]:
                    partition = DescribeLogDirsPartition(partition_index=number)
                    here.setdefault(path, []).append(partition)
            for path, partitions in here.items():
                topic = DescribeLogDirsTopic(name=name, partitions=partitions)
                results[path].topics.append(topic)
        return DescribeLogDirsResponse(results=list(results.values()))
