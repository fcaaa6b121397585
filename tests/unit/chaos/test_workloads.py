"""The workloads that compare what brokers describe with the clients' results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from chaos.workloads.every_write_api import Report, _described, differences
from chaos.workloads.one_object import OneObject, _Entries
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


# The workload one_object compares what the clients wrote with what brokers describe.


class DescribingBroker:
    """Answers DescribeConfigs with these values. None: the broker does not know the topic."""

    def __init__(self, **values: str | None) -> None:
        self._values = values

    async def call(self, *_: Any) -> Any:
        results = [
            SimpleNamespace(
                resource_name=name,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if value is None else 0,
                configs=[] if value is None else [SimpleNamespace(value=value)],
            )
            for name, value in self._values.items()
        ]
        return SimpleNamespace(results=results)


async def test_a_broker_that_does_not_know_a_topic_yet_describes_no_entries() -> None:
    """The comparison is repeated later. An exception would end the scenario."""
    load = OneObject(MagicMock(brokers=(1,)))
    broker: Any = DescribingBroker(current="0:1,1:2", new=None, unset="")
    configs = await load._described_configs(broker, 1)
    assert configs == {"current": ["0:1", "1:2"], "new": [], "unset": []}


def test_acknowledged_entries_must_be_found_once_and_unsent_entries_never() -> None:
    entries = _Entries(sent={"a", "b"}, acknowledged={"a"})
    readings = (["a"], ["a", "b"], ["b"], ["a", "a"], ["a", "c"])
    assert [entries.wrong(names) for names in readings] == [False, False, True, True, True]
