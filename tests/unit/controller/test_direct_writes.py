"""A broker below the bridge release writes to ZooKeeper and loses no concurrent change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import incremental_alter_configs as incremental
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cluster_model.acls.authorization import no_authorizer
from cluster_model.acls.bindings import NO_ACLS
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.znodes.operations import Create, Operation, SetData
from controller.apis.base import DONE, ApiSettings, Decided
from controller.apis.create_topics import CreateTopics
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from controller.direct.writer import DirectServices, DirectWriter
from controller.requests.pending_request import PendingRequest
from controller.store.plan import plan_operations
from controller.store.port import ContentConflictError, UnknownOutcomeError
from event_log.writer import NullEventLog
from tests.unit.controller.loop_bench import InSeries, Term
from tests.unit.controller.request_contexts import a_pending_request
from tests.unit.controller.test_controller_loop import Decides
from zookeeper_client.wire import (
    BAD_VERSION,
    NODE_EXISTS,
    Read,
    ReadChildren,
    ReadData,
    ReadResult,
    Stat,
    ZnodeData,
)

DEFAULTS = ConfigResource("brokers", "<default>")
PATH = "/config/brokers/<default>"
CONFIG = BrokerConfig.from_properties({"broker.id": "1", "zookeeper.connect": "h:1"})
API = IncrementalAlterConfigs(CONFIG)


class Znodes:
    """Znodes in a dict. Before each write, another writer stores an item of `concurrent`."""

    def __init__(self, **configs: str) -> None:
        self.znodes: dict[str, tuple[int, bytes]] = {}
        self.concurrent: list[dict[str, str]] = []
        self.outcomes: list[Any] = []
        self.breaks = False
        self._operations: dict[bytes, Operation] = {}
        self.put(configs)

    def put(self, configs: dict[str, str]) -> None:
        version = self.znodes[PATH][0] + 1 if PATH in self.znodes else 0
        self.znodes[PATH] = version, json.dumps({"version": 1, "config": configs}).encode()

    @property
    def configs(self) -> dict[str, str]:
        config: dict[str, str] = json.loads(self.znodes[PATH][1])["config"]
        return config

    async def read(self, reads: Sequence[Read], /) -> list[ReadResult]:
        results: list[ReadResult] = []
        for wanted in reads:
            version, data = self.znodes.get(wanted.path, (-1, b""))
            stat = Stat(1, 1, 0, 0, version, 0, 0, 0, len(data), 0, 1)
            is_there = isinstance(wanted, ReadData) and version >= 0
            is_folder = isinstance(wanted, ReadChildren)
            results.append(ZnodeData(data, stat.pack()) if is_there else [] if is_folder else None)
        return results

    async def last_zxid(self) -> int:
        return 5

    async def encode(self, operations: Sequence[Operation], /) -> list[bytes]:
        encoded = [repr(operation).encode() for operation in operations]
        self._operations |= dict(zip(encoded, operations, strict=True))
        return encoded

    async def write(self, outcomes: bytes, operations: Sequence[bytes], /) -> int:
        if self.breaks:
            raise UnknownOutcomeError
        if self.concurrent:
            self.put(self.concurrent.pop())
        for index, operation in enumerate(self._operations[number] for number in operations):
            if isinstance(operation, SetData):
                version, _ = self.znodes[operation.path]
                if operation.version != version:
                    raise ContentConflictError(index, BAD_VERSION)
                self.znodes[operation.path] = version + 1, operation.data
            else:
                assert isinstance(operation, Create)
        self.outcomes.append(json.loads(outcomes))
        return 6


def altering(name: str, value: str) -> PendingRequest:
    config = incremental.AlterableConfig(name, 0, value)
    resource = incremental.AlterConfigsResource(4, "", [config])
    request = incremental.IncrementalAlterConfigsRequest([resource], False)
    reply = asyncio.get_running_loop().create_future()
    return a_pending_request(reply, API, request, key=44, version=1, deadline_s=30.0)


class Rejects:
    """A policy that rejects everything."""

    async def evaluate(self, *_check: Any) -> ApiError | None:
        return ApiError(ErrorCode.POLICY_VIOLATION, "not on a Saturday")


def writer(session: Znodes, policies: Rejects | None = None) -> DirectWriter:
    services = DirectServices(
        bind_authorize=no_authorizer,
        acls=lambda: NO_ACLS,
        acls_zxid=lambda: 4,
        policies=None if policies is None else InSeries(policies),
        log=NullEventLog(),
        now_s=lambda: 0.0,
        now_ms=lambda: 0,
    )
    return DirectWriter(session, services)


async def test_a_direct_write_keeps_a_concurrent_change() -> None:
    """Another broker sets another config between the read and the write."""
    session = Znodes(**{"log.cleaner.threads": "1"})
    session.concurrent = [{"log.cleaner.threads": "1", "num.io.threads": "9"}]
    reply, zxid = await writer(session).write(altering("log.cleaner.threads", "2"))
    assert [response.error_code for response in reply.responses] == [ErrorCode.NONE]
    assert zxid == 6
    assert session.configs == {"log.cleaner.threads": "2", "num.io.threads": "9"}


async def test_the_multi_of_a_direct_write_contains_its_outcome() -> None:
    session = Znodes()
    await writer(session).write(altering("log.cleaner.threads", "2"))
    ((entry,),) = [outcome["outcomes"] for outcome in session.outcomes]
    assert (entry["id"], entry["request"]) == ([1, "life", 1], "r")
    assert [element[:2] for element in entry["elements"]] == [["4:", 0]]


async def test_policies_reject_direct_writes() -> None:
    session = Znodes()
    reply, _ = await writer(session, Rejects()).write(altering("log.cleaner.threads", "2"))
    errors = [(response.error_code, response.error_message) for response in reply.responses]
    assert errors == [(ErrorCode.POLICY_VIOLATION, "not on a Saturday")]
    assert session.configs == {}


async def test_a_write_with_an_unknown_outcome_gets_request_timed_out() -> None:
    session = Znodes()
    session.breaks = True
    with pytest.raises(ApiError) as raised:
        await writer(session).write(altering("log.cleaner.threads", "2"))
    assert raised.value.error is ErrorCode.REQUEST_TIMED_OUT


async def test_a_direct_write_is_rejected_while_a_kraft_controller_owns_the_configs() -> None:
    session = Znodes()
    session.znodes["/controller"] = 0, b'{"version":2,"brokerid":3000,"kraftControllerEpoch":4}'
    with pytest.raises(ApiError) as raised:
        await writer(session).write(altering("log.cleaner.threads", "2"))
    assert raised.value.error is ErrorCode.STALE_CONTROLLER_EPOCH
    assert "when there is a KRaft controller" in str(raised.value.message)
    assert session.configs == {}
    session.znodes["/controller"] = 1, b'{"version":2,"brokerid":1,"kraftControllerEpoch":-1}'
    await writer(session).write(altering("log.cleaner.threads", "2"))
    assert session.configs == {"log.cleaner.threads": "2"}


async def test_the_controller_decides_again_after_a_conflict_with_a_direct_write() -> None:

    class Reloading(Term):
        def _record(self, event: str) -> None:
            super()._record(event)
            if event == "reload":
                self.loop.schedule(self._reload)

        async def _reload(self) -> None:
            del self.store.znodes[PATH]  # ends the conflict, as an update of the image would

    term = Reloading()
    term.store.znodes[PATH] = b"external"
    record = ConfigRecord(DEFAULTS, {"num.io.threads": "9"})
    (errors,) = await term.run_until(term.submit(Decides(Decided("4:", DONE, (record,))), None))
    assert errors == {"4:": "NONE"}
    assert term.happened.count("reload") == 1


def test_a_config_is_written_at_its_known_version() -> None:
    """Each replayed write raises the version. The first write of a config sets it to 0."""
    record = ConfigRecord(DEFAULTS, {"num.io.threads": "9"}, notify=False)
    image = MetadataImage().with_config(DEFAULTS, {}, 3)
    assert [o.version for o in plan_operations([record], image)] == [3]  # type: ignore[union-attr]
    after = image.replay([record])
    assert [o.version for o in plan_operations([record], after)] == [4]  # type: ignore[union-attr]
    fresh = MetadataImage().replay([record])
    assert fresh.config_versions[DEFAULTS] == 0


class Tree(Znodes):
    """Znodes with folders: brokers 1 to 3, and topics. `rivals` create topics before a write."""

    def __init__(self, *topics: str, markers: Sequence[str] = (), configs: Sequence[str] = ()):
        super().__init__()
        endpoint = {"version": 5, "endpoints": ["PLAINTEXT://h:1"], "rack": None}
        for broker in (1, 2, 3):
            self.add(f"/brokers/ids/{broker}", json.dumps(endpoint).encode())
        for topic in topics:
            self.add(f"/brokers/topics/{topic}", b"not read")
        for topic in markers:
            self.add(f"/admin/delete_topics/{topic}")
        for topic in configs:
            self.add(f"/config/topics/{topic}", b'{"version":1,"config":{"segment.ms":"9"}}')
        self.rivals: list[str] = []
        self.reads = 0

    def add(self, path: str, content: bytes = b"") -> None:
        self.znodes[path] = 0, content

    async def read(self, reads: Sequence[Read], /) -> list[ReadResult]:
        self.reads += 1
        results = await super().read(reads)
        for at, wanted in enumerate(reads):
            if isinstance(wanted, ReadChildren):
                paths = (path.rpartition("/") for path in self.znodes)
                results[at] = [name for parent, _, name in paths if parent == wanted.path]
        return results

    async def write(self, outcomes: bytes, operations: Sequence[bytes], /) -> int:
        for rival in self.rivals:
            self.add(f"/brokers/topics/{rival}")
        self.rivals = []
        decoded = [self._operations[operation] for operation in operations]
        for index, operation in enumerate(decoded):
            if isinstance(operation, Create) and operation.path in self.znodes:
                raise ContentConflictError(index, NODE_EXISTS)
        for operation in decoded:
            version = self.znodes.get(operation.path, (-1, b""))[0]
            assert isinstance(operation, Create | SetData)
            self.znodes[operation.path] = version + 1, operation.data or b""
        self.outcomes.append(json.loads(outcomes))
        return 6


def creating(*topics: CreatableTopic, made_by_broker: bool = True) -> PendingRequest:
    reply = asyncio.get_running_loop().create_future()
    settings = ApiSettings(
        config=CONFIG,
        current=lambda: EffectiveBrokerConfig.of(CONFIG),
        token_secret=None,
        has_authorizer=False,
        stores_records=True,
    )
    return a_pending_request(
        reply,
        CreateTopics.build(settings),
        CreateTopicsRequest(list(topics)),
        key=ApiKey.CREATE_TOPICS,
        version=5,
        deadline_s=30.0,
        made_by_broker=made_by_broker,
    )


def topic(name: str, partitions: int = 4, replicas: int = 2, **configs: str) -> CreatableTopic:
    entries = [CreatableTopicConfig(key.replace("_", "."), configs[key]) for key in configs]
    return CreatableTopic(name, partitions, replicas, configs=entries)


async def created(session: Tree, *topics: CreatableTopic, **options: Any) -> dict[str, ErrorCode]:
    response, _ = await writer(session, **options).write(creating(*topics))
    return {result.name: ErrorCode(result.error_code) for result in response.topics}


async def test_a_created_topic_has_configs_replicas_and_an_id_but_no_partition_states() -> None:
    """As in Kafka, the controller writes the states. Configs of a deleted topic are replaced."""
    session = Tree(configs=["left"])
    topics = topic("left", cleanup_policy="compact"), topic("new", partitions=300, replicas=3)
    assert await created(session, *topics) == {"left": ErrorCode.NONE, "new": ErrorCode.NONE}
    new = json.loads(session.znodes["/brokers/topics/new"][1])
    assert len(new["partitions"]) == 300
    assert {tuple(sorted(replicas)) for replicas in new["partitions"].values()} == {(1, 2, 3)}
    assert len(new["topic_id"]) == 22
    assert json.loads(session.znodes["/config/topics/left"][1]) == {
        "version": 1,
        "config": {"cleanup.policy": "compact"},
    }
    assert not [path for path in session.znodes if "/partitions" in path]
    assert [len(write["outcomes"]) for write in session.outcomes] == [1, 1]


async def test_a_topic_that_exists_collides_or_is_being_deleted_is_not_created() -> None:
    session = Tree("there", "a.b", markers=["going"])
    before = dict(session.znodes)
    names = ("there", "a_b", "going", "in/valid")
    assert await created(session, *map(topic, names)) == {
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "going": ErrorCode.TOPIC_ALREADY_EXISTS,
        "in/valid": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert await created(session, topic("t", replicas=4)) == {
        "t": ErrorCode.INVALID_REPLICATION_FACTOR
    }
    assert session.znodes == before


async def test_a_rival_that_creates_the_topic_first_wins() -> None:
    """The write conflicts, and the topic is found when the request is decided again."""
    session = Tree()
    session.rivals = ["new"]
    assert await created(session, topic("new"), topic("other")) == {
        "new": ErrorCode.TOPIC_ALREADY_EXISTS,
        "other": ErrorCode.NONE,
    }
    assert session.znodes["/brokers/topics/new"] == (0, b"")


async def test_the_brokers_policy_rejects_a_topic_that_it_would_create() -> None:
    session = Tree()
    response, _ = await writer(session, Rejects()).write(creating(topic("new")))
    (result,) = response.topics
    assert result.error_code == ErrorCode.POLICY_VIOLATION
    assert result.error_message == "not on a Saturday"
    assert "/brokers/topics/new" not in session.znodes


@pytest.mark.parametrize("made_by_broker", [True, False])
async def test_a_broker_needs_no_right_to_create_what_its_clients_need(
    made_by_broker: bool,
) -> None:
    session = Tree()
    direct = writer(session)
    nothing_allowed = replace(direct._services, bind_authorize=lambda *_: lambda *_, **__: False)
    pending = creating(topic("new"), made_by_broker=made_by_broker)
    response, _ = await DirectWriter(session, nothing_allowed).write(pending)
    expected = ErrorCode.NONE if made_by_broker else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [result.error_code for result in response.topics] == [expected]
    assert ("/brokers/topics/new" in session.znodes) is made_by_broker
