"""Every API of a broker works in slices: no loop over the elements of a request stops all others.

The first test reads the source of every API. The others execute large requests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import pytest

import broker_proxy.apis
from bridgehead.kafka_wire.messages.delete_groups import DeleteGroupsRequest
from bridgehead.kafka_wire.messages.describe_groups import DescribeGroupsRequest
from bridgehead.kafka_wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from bridgehead.kafka_wire.messages.describe_transactions import DescribeTransactionsRequest
from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from broker_proxy.apis.admin.metadata import Metadata
from broker_proxy.apis.base import LocalApi
from broker_proxy.apis.groups.delete_groups import DeleteGroups
from broker_proxy.apis.groups.describe_groups import DescribeGroups
from broker_proxy.apis.groups.find_coordinator import FindCoordinator
from broker_proxy.apis.groups.group_ports import NoGroups
from broker_proxy.apis.groups.offset_fetch import OffsetFetch
from broker_proxy.apis.records.describe_producers import DescribeProducers
from broker_proxy.apis.records.list_offsets import ListOffsets
from broker_proxy.apis.records.transactions import DescribeTransactions
from broker_proxy.client_request import AuthorizeFor
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker
from tests.unit.turns import turns_during

_FOLDER: Final = Path(broker_proxy.apis.__file__).parent
# The fields of requests whose length the client chooses, and other names for their elements.
_LONG: Final = ("message.", "topic.", "directory.", "group.")
# Loops that may be long and are not sliced there, and why.
_EXEMPT: Final = {
    "alter_configs_split.py: split": "the long loop is sliced; the others count and copy",
    "alter_configs_split.py: merge": "called in a thread for large requests",
    "describe_client_quotas.py: handle": "at most three entity types",
    "describe_groups.py: _members": "the members of a group, not elements of the request",
    "fetch_sessions.py: _wanted": "a generator; its caller slices",
    "fetch_sessions.py: _forgotten": "a generator; its caller slices",
    "kraft_requests.py: _parts": "a generator; its caller slices",
    "kraft_requests.py: _states": "a generator; its caller slices",
    "log_dirs.py: replicas": "the partitions of one topic",
    "metadata.py: _key": "at most one topic",
}


def _loops(function: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and iterated expression of each loop that is not asynchronous."""
    for node in ast.walk(function):
        if isinstance(node, ast.For) or (isinstance(node, ast.comprehension) and not node.is_async):
            yield node.iter.lineno, ast.unparse(node.iter)


def _unsliced() -> Iterator[str]:
    for file in sorted(_FOLDER.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if f"{file.name}: {function.name}" in _EXEMPT:
                continue
            for line, expression in _loops(function):
                if any(part in expression for part in _LONG):
                    yield f"{file.parent.name}/{file.name}:{line} {expression}"


def test_no_api_iterates_over_elements_of_a_request_at_once() -> None:
    assert list(_unsliced()) == []


_COUNT: Final = 40_000  # elements; they take at least ten slices
_NAMES: Final = [f"n{number}" for number in range(_COUNT)]
BuildApi = Callable[[CoordinatingBroker, AuthorizeFor], LocalApi]


def _offsets() -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=number) for number in range(_COUNT)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic("t", partitions)])


_LARGE: Final[dict[str, tuple[BuildApi, int, Any]]] = {
    "FindCoordinator": (
        lambda broker, may: FindCoordinator(
            broker.view, broker.coordinators, cast(Any, None), may, 5.0
        ),
        4,
        FindCoordinatorRequest(coordinator_keys=_NAMES),
    ),
    "DescribeGroups": (
        lambda broker, may: DescribeGroups(NoGroups(broker.coordinators), may),
        5,
        DescribeGroupsRequest(groups=_NAMES),
    ),
    "DeleteGroups": (
        lambda broker, may: DeleteGroups(NoGroups(broker.coordinators), may),
        2,
        DeleteGroupsRequest(groups_names=_NAMES),
    ),
    "OffsetFetch": (
        lambda broker, may: OffsetFetch(NoGroups(broker.coordinators), broker.coordinators, may),
        8,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name) for name in _NAMES]),
    ),
    "DescribeTransactions": (
        lambda broker, may: DescribeTransactions(broker.coordinators, may),
        0,
        DescribeTransactionsRequest(transactional_ids=_NAMES),
    ),
    "DescribeProducers": (
        lambda broker, may: DescribeProducers(1, broker.cache, may),
        0,
        DescribeProducersRequest(topics=[TopicRequest("t", list(range(_COUNT)))]),
    ),
    "ListOffsets": (
        lambda broker, may: ListOffsets(1, broker.cache, may, cast(Any, None)),
        5,
        _offsets(),
    ),
    "Metadata": (
        lambda broker, may: Metadata(broker.view, authorize_for=may),
        12,
        MetadataRequest(topics=[MetadataRequestTopic(bytes(16), name) for name in _NAMES]),
    ),
}


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("name", _LARGE)
async def test_others_run_while_an_api_executes_a_large_request(name: str, allowed: bool) -> None:
    broker = CoordinatingBroker()
    for topic in ("__consumer_offsets", "__transaction_state", "t"):
        broker.create(topic, (1,), (1,))
    build, version, message = _LARGE[name]
    api = build(broker, authorize_every_client(allowed))
    _, turns = await turns_during(api.handle(a_request(api.api_key, version), message))
    assert turns >= 5
