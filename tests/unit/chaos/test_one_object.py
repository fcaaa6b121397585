"""The workload one_object compares what the clients wrote with what brokers describe."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from bridgehead.kafka_wire.errors import ErrorCode
from chaos.workloads.one_object import OneObject, _Entries


class Broker:
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
    broker: Any = Broker(current="0:1,1:2", new=None, unset="")
    configs = await load._described_configs(broker, 1)
    assert configs == {"current": ["0:1", "1:2"], "new": [], "unset": []}


def test_acknowledged_entries_must_be_found_once_and_unsent_entries_never() -> None:
    entries = _Entries(sent={"a", "b"}, acknowledged={"a"})
    readings = (["a"], ["a", "b"], ["b"], ["a", "a"], ["a", "c"])
    assert [entries.wrong(names) for names in readings] == [False, False, True, True, True]
