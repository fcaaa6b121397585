"""DescribeLogDirs, key 35, versions 0 to 4: every broker speaks of its own replicas.

There is no data plane: a replica is an empty log without files. The directories named are those
of the broker's properties, the first one holds every replica, and what they could hold is not
known, since none of them is touched. Unknown topics and replicas of others are left out.

Version notes:
    3: an error of the whole request. 4: total and usable bytes; -1 says that they are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from broker_proxy.metadata_cache import MetadataCache


@dataclass(frozen=True, slots=True)
class DescribeLogDirs:
    """See LocalApi. `log_dirs` has one at least."""

    broker_id: int
    cache: MetadataCache
    log_dirs: tuple[str, ...]
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
        results = [DescribeLogDirsResult(log_dir=log_dir) for log_dir in self.log_dirs]
        results[0].topics = list(self._replicas(wanted))
        return DescribeLogDirsResponse(results=results)

    def _replicas(self, wanted: dict[str, set[int]] | None) -> Iterator[DescribeLogDirsTopic]:
        for name in self.cache.topics if wanted is None else wanted:
            topic = self.cache.topics.get(name)
            partitions = [
                DescribeLogDirsPartition(partition_index=number)
                for number, partition in (sorted(topic.partitions.items()) if topic else ())
                if self.broker_id in partition.replicas
                and (wanted is None or number in wanted[name])
            ]
            if partitions:
                yield DescribeLogDirsTopic(name=name, partitions=partitions)


def log_dirs_of(log_dirs: str | None, log_dir: str | None) -> tuple[str, ...]:
    """Return the directories that `log.dirs` names, or else `log.dir`."""
    named = (each.strip() for each in (log_dirs or log_dir or "").split(","))
    return tuple(each for each in named if each) or ("",)
