"""The workload every_write_api compares what brokers describe with the clients' results."""

from __future__ import annotations

from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from chaos.workloads.every_write_api import Report, _described, differences
from chaos.write_requests import creations

NOTHING: dict[int, Any] = {
    ApiKey.DESCRIBE_CONFIGS: {"results": []},
    ApiKey.DESCRIBE_ACLS: {"resources": []},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"entries": []},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"results": []},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {"tokens": []},
}


class Broker:
    """Has these topics, and nothing else."""

    def __init__(self, *topics: str) -> None:
        partition = {"partitionIndex": 0, "replicaNodes": [1]}
        self._topics = [{"name": name, "partitions": [partition]} for name in topics]

    async def call(self, key: int, _version: int, _body: Any) -> Any:
        return {"topics": self._topics} if key == ApiKey.METADATA else NOTHING[key]


async def test_a_topic_of_a_request_with_validate_only_must_not_exist() -> None:
    (dry_run,) = (
        creation for creation in creations("object-1", 1, 1) if creation.kind == "validated"
    )
    created = dry_run.body["topics"][0]["name"]
    report = Report()
    report.facts["validated", "object-1"].note(dry_run.value, "ok")
    without: Any = Broker("other")
    assert differences(report, await _described(without, ["object-1"]), 1) == []
    having: Any = Broker(created)
    assert differences(report, await _described(having, ["object-1"]), 1) == [
        "broker 1: validated of object-1 is True, not one of {None}"
    ]
