"""A controller's loop over a store that keeps the promises of `controller.store.port` in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.authorization import no_authorizer
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from cluster_model.znode_operations import Create, Delete, Operation, SetData
from controller.apis.base import AdminApi
from controller.loop import ControllerLoop, Shell
from controller.mutation_quotas import MutationQuotas
from controller.store.outcomes import OutcomeIndex
from controller.store.port import (
    Committed,
    ContentConflictError,
    ControllerMovedError,
    Fence,
    UnknownOutcomeError,
)
from controller.work import Work, told_codes
from envelope.messages import EnvelopeAnswer, RequestIdentity
from event_log.writer import NullEventLog
from tests.unit.topic_decisions import context, image
from zookeeper_client.wire import NO_NODE, NODE_EXISTS, encode_operation, open_acl

FENCE = Fence(epoch=5, zk_version=5, zxid=100)


class MemoryStore:
    """Znodes in a dict. `multis` are those that were applied, in order."""

    def __init__(self) -> None:
        self.znodes: dict[str, bytes | None] = {}
        self.multis: list[list[Operation]] = []
        self.moved = False  # another controller is in office
        self.unknown_from: int | None = None  # the session goes with this commit in flight
        self.holds = True
        self.zxid = 100
        self.number = 0
        self._operations: dict[bytes, Operation] = {}

    @property
    def next_commit(self) -> int:
        return self.number + 1

    def encode(self, operation: Operation) -> bytes:
        encoded = encode_operation(operation, "", open_acl)
        self._operations[encoded] = operation
        return encoded

    def lease_holds(self) -> bool:
        return self.holds

    async def commit(self, fence: Fence, effects: Sequence[bytes]) -> Committed:
        committed, conflict = await self.commit_in_turn(fence, [effects])
        if conflict is not None:
            raise conflict
        return committed[0]

    async def commit_in_turn(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        assert fence == FENCE
        committed: list[Committed] = []
        for each in effects:
            await asyncio.sleep(0)
            if self.moved:
                raise ControllerMovedError
            conflict = self._apply([self._operations[encoded] for encoded in each])
            if conflict is not None:
                return committed, conflict
            if self.unknown_from is not None and self.number >= self.unknown_from:
                raise UnknownOutcomeError
            committed.append(Committed(self.number, self.zxid))
        return committed, None

    def _apply(self, operations: list[Operation]) -> ContentConflictError | None:
        after = dict(self.znodes)
        for index, operation in enumerate(operations):
            match operation:
                case Create(path, data, _, sequential):
                    path += f"{len(after):010}" if sequential else ""
                    if path in after:
                        return ContentConflictError(index, NODE_EXISTS)
                    after[path] = data
                case SetData(path, data) if path in after:
                    after[path] = data
                case Delete(path) if path in after:
                    del after[path]
                case _:
                    return ContentConflictError(index, NO_NODE)
        self.znodes = after
        self.multis.append(operations)
        self.number += 1
        self.zxid += 1
        return None


class Term:
    """One term of office over `store`; `happened` is what the world was told, in order."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        before: MetadataImage | None = None,
        **loop: Any,
    ):
        self.store = store or MemoryStore()
        self.happened: list[str] = []
        self.throttled_ms = 0  # what the last answer said
        self.now_s = 1000.0
        self.loop = ControllerLoop(
            store=self.store,
            fence=FENCE,
            image=before or image(),
            outcomes=OutcomeIndex(),
            shell=Shell(
                publish=lambda _before, _after, changed: self._tell(f"published {sorted(changed)}"),
                reload=lambda: self._tell("reload"),
                encode_answer=self._answer,
                encode_refusal=lambda work, error: EnvelopeAnswer(0, error.name.encode(), 0),
                bind_authorize=no_authorizer,
                now_s=lambda: self.now_s,
                now_ms=lambda: int(self.now_s * 1000),
            ),
            log=NullEventLog(),
            quotas=MutationQuotas(samples=11, window_s=1),
            **loop,
        )
        self._sequence = 0

    def _tell(self, what: str) -> None:
        self.happened.append(what)

    def _answer(
        self, work: Work, unfinished: frozenset[str], _image: MetadataImage
    ) -> EnvelopeAnswer:
        self._tell(f"answered {work.identity.sequence}")
        self.throttled_ms = work.charges.throttle_left_ms(int(self.now_s * 1000))
        told = {element: ErrorCode(c).name for element, c in told_codes(work.outcomes, unfinished)}
        return EnvelopeAnswer(0, json.dumps(told).encode(), work.zxid)

    def ask(
        self,
        api: AdminApi,
        request: Any,
        *,
        sequence: int | None = None,
        version: int = 7,
        deadline_s: float = 2000.0,
        client_id: str | None = None,
        attempt: int = 1,
        principal: KafkaPrincipal = ANONYMOUS,
    ) -> asyncio.Future[EnvelopeAnswer]:
        """Queue a request; `sequence` makes it a resend of an earlier one."""
        self._sequence += 1
        answer: asyncio.Future[EnvelopeAnswer] = asyncio.get_running_loop().create_future()
        self.loop.submit(
            Work(
                identity=RequestIdentity(1, "life", sequence or self._sequence),
                context=replace(
                    context(version),
                    api_key=api.api_key,
                    client_id=client_id,
                    principal=principal,
                ),
                api=api,
                request=request,
                correlation_id=0,
                deadline_s=deadline_s,
                answer=answer,
                attempt=attempt,
            )
        )
        return answer

    async def run_until(self, *answers: asyncio.Future[EnvelopeAnswer]) -> list[dict[str, str]]:
        """Run until all are answered; return what each was told, element by element."""
        running = asyncio.create_task(self.loop.run())
        try:
            for answer in answers:
                await asyncio.wait((running, answer), return_when="FIRST_COMPLETED")
                assert not running.done(), running
        finally:
            running.cancel()
        return [json.loads(answer.result().response_data or b"{}") for answer in answers]

    async def run_until_idle(self) -> None:
        """Run until nothing is queued, no job is left and nobody was published to for long."""
        running = asyncio.create_task(self.loop.run())
        seen = -1
        while seen != len(self.store.multis) or self.loop.queue_length:
            seen = len(self.store.multis)
            for _ in range(50):  # turns of the loop, not time
                await asyncio.sleep(0)
        running.cancel()
