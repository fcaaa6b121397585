"""A broker below the bridge release writes itself, and loses nothing of what others write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import incremental_alter_configs as incremental
from cluster_model.acls import NO_ACLS
from cluster_model.authorization import no_authorizer
from cluster_model.broker_configs import BrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.znode_operations import Create, Operation, SetData
from controller.apis.base import DONE, Decided
from controller.apis.config_changes import ConfigChanges
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from controller.direct.writer import DirectServices, DirectWriter
from controller.store.plan import plan_operations
from controller.store.port import ContentConflictError, UnknownOutcomeError
from controller.work import Work
from envelope.messages import RequestIdentity
from event_log.writer import NullEventLog
from tests.unit.loop_bench import Term
from tests.unit.test_controller_loop import Decides
from tests.unit.topic_decisions import context
from zookeeper_client.wire import BAD_VERSION, Read, ReadData, ReadResult, Stat, ZnodeData

DEFAULTS = ConfigResource("brokers", "<default>")
PATH = "/config/brokers/<default>"
API = IncrementalAlterConfigs(ConfigChanges(BrokerConfig.from_properties({"broker.id": "1"})))


class Znodes:
    """A session over znodes in a dict. `meanwhile` runs before the next write: somebody else's."""

    def __init__(self, **configs: str) -> None:
        self.znodes: dict[str, tuple[int, bytes]] = {}
        self.meanwhile: list[dict[str, str]] = []
        self.outcomes: list[Any] = []
        self.breaks = False
        self._operations: dict[bytes, Operation] = {}
        self.put(configs)

    def put(self, configs: dict[str, str]) -> None:
        version = self.znodes[PATH][0] + 1 if PATH in self.znodes else 0
        self.znodes[PATH] = version, json.dumps({"version": 1, "config": configs}).encode()

    @property
    def configs(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.znodes[PATH][1])["config"]
        return found

    async def read(self, reads: Sequence[Read], /) -> list[ReadResult]:
        found: list[ReadResult] = []
        for each in reads:
            version, data = self.znodes.get(each.path, (-1, b""))
            stat = Stat(1, 1, 0, 0, version, 0, 0, 0, len(data), 0, 1)
            is_there = isinstance(each, ReadData) and version >= 0
            found.append(ZnodeData(data, stat) if is_there else None)
        return found

    async def last_zxid(self) -> int:
        return 5

    async def encode(self, operations: Sequence[Operation], /) -> list[bytes]:
        encoded = [repr(operation).encode() for operation in operations]
        self._operations |= dict(zip(encoded, operations, strict=True))
        return encoded

    async def write(self, outcomes: bytes, operations: Sequence[bytes], /) -> int:
        if self.breaks:
            raise UnknownOutcomeError
        if self.meanwhile:
            self.put(self.meanwhile.pop())
        for index, operation in enumerate(self._operations[each] for each in operations):
            if isinstance(operation, SetData):
                version, _ = self.znodes[operation.path]
                if operation.version != version:
                    raise ContentConflictError(index, BAD_VERSION)
                self.znodes[operation.path] = version + 1, operation.data
            else:
                assert isinstance(operation, Create)
        self.outcomes.append(json.loads(outcomes))
        return 6


def work(name: str, value: str) -> Work:
    config = incremental.AlterableConfig(name, 0, value)
    resource = incremental.AlterConfigsResource(4, "", [config])
    return Work(
        identity=RequestIdentity(1, "life", 1),
        context=replace(context(1), api_key=44),
        api=API,
        request=incremental.IncrementalAlterConfigsRequest([resource], False),
        correlation_id=0,
        deadline_s=30.0,
        answer=asyncio.get_running_loop().create_future(),
    )


class Refuses:
    """A policy that lets nothing pass."""

    async def ask(self, *_asked: Any) -> ApiError | None:
        return ApiError(ErrorCode.POLICY_VIOLATION, "not on a Saturday")


def writer(session: Znodes, policies: Refuses | None = None) -> DirectWriter:
    services = DirectServices(
        bind_authorize=no_authorizer,
        acls=lambda: NO_ACLS,
        acls_as_of=lambda: 4,
        policies=policies,
        log=NullEventLog(),
        now_s=lambda: 0.0,
        now_ms=lambda: 0,
    )
    return DirectWriter(session, services)


async def test_what_was_written_meanwhile_is_not_overwritten() -> None:
    """Another broker sets another name between our reading and our writing."""
    session = Znodes(**{"log.cleaner.threads": "1"})
    session.meanwhile = [{"log.cleaner.threads": "1", "num.io.threads": "9"}]
    answer, zxid = await writer(session).write(work("log.cleaner.threads", "2"))
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    assert zxid == 6
    assert session.configs == {"log.cleaner.threads": "2", "num.io.threads": "9"}


async def test_the_outcome_goes_into_the_multi_of_its_effect() -> None:
    """So ZooKeeper's log tells for which request it was written."""
    session = Znodes()
    await writer(session).write(work("log.cleaner.threads", "2"))
    ((entry,),) = [told["outcomes"] for told in session.outcomes]
    assert (entry["id"], entry["request"]) == ([1, "life", 1], "r")
    assert [element[:2] for element in entry["elements"]] == [["4:", 0]]


async def test_policies_are_asked_on_this_way_too() -> None:
    """As each broker asked them before the bridge."""
    session = Znodes()
    answer, _ = await writer(session, Refuses()).write(work("log.cleaner.threads", "2"))
    told = [(each.error_code, each.error_message) for each in answer.responses]
    assert told == [(ErrorCode.POLICY_VIOLATION, "not on a Saturday")]
    assert session.configs == {}


async def test_an_end_that_nobody_knows_is_no_refusal() -> None:
    """The session went with the multi in flight: the client is told that it timed out."""
    session = Znodes()
    session.breaks = True
    with pytest.raises(ApiError) as told:
        await writer(session).write(work("log.cleaner.threads", "2"))
    assert told.value.error is ErrorCode.REQUEST_TIMED_OUT


async def test_a_controller_that_meets_an_old_brokers_write_decides_anew() -> None:
    """Once everything was read again; its client hears of nothing."""

    class Reloading(Term):
        def _tell(self, what: str) -> None:
            super()._tell(what)
            if what == "reload":
                self.loop.start_chore(self._reload)

        async def _reload(self) -> None:
            del self.store.znodes[PATH]  # as if the image had been told

    term = Reloading()
    term.store.znodes[PATH] = b"foreign"
    record = ConfigRecord(DEFAULTS, {"num.io.threads": "9"})
    (told,) = await term.run_until(term.ask(Decides(Decided("4:", DONE, (record,))), None))
    assert told == {"4:": "NONE"}
    assert term.happened.count("reload") == 1


def test_a_config_is_written_at_the_version_that_is_known() -> None:
    """Each replayed write raises it; a config whose version nobody knows is written as it is."""
    record = ConfigRecord(DEFAULTS, {"num.io.threads": "9"}, notify=False)
    known = MetadataImage().with_config(DEFAULTS, {}, 3)
    assert [o.version for o in plan_operations([record], known)] == [3]  # type: ignore[union-attr]
    after = known.replay([record])
    assert [o.version for o in plan_operations([record], after)] == [4]  # type: ignore[union-attr]
    fresh = MetadataImage().replay([record])
    assert fresh.config_versions[DEFAULTS] == 0
