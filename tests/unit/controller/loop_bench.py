"""A controller loop over a store in memory."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.acls.authorization import no_authorizer
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from controller.apis.base import AdminApi
from controller.loop.loop import ControllerLoop
from controller.loop.mutation_quotas import MutationQuotas
from controller.loop.policy_evaluation import PolicyCall, Results
from controller.loop.ports import LoopCallbacks
from controller.requests.events import error_codes
from controller.requests.pending_request import PendingRequest
from controller.requests.responses import ResponseEncoder
from controller.store.outcomes import OutcomeIndex
from controller.store.port import (
    Committed,
    ContentConflictError,
    ControllerMovedError,
    Fence,
    UnknownOutcomeError,
)
from envelope.messages import EnvelopeReply, RequestIdentity
from event_log.writer import NullEventLog
from node.assembly.policy_runner import SERIES_S
from tests.unit.controller.request_contexts import a_client, a_pending_request
from tests.unit.controller.topic_decisions import image
from zookeeper_client.wire import NO_NODE, NODE_EXISTS, encode_operation, open_acl

FENCE = Fence(epoch=5, zk_version=5, zxid=100, last_commit_zxid=90)


class MemoryStore:
    """A store whose znodes are in a dict. `multis` lists the applied multis in order."""

    def __init__(self) -> None:
        self.znodes: dict[str, bytes | None] = {}
        self.multis: list[list[Operation]] = []
        self.moved = False  # whether another controller is active
        self.unknown_from: int | None = None  # number of the first commit with an unknown outcome
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

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        assert fence == FENCE
        committed: list[Committed] = []
        for effect in effects:
            await asyncio.sleep(0)
            if self.moved:
                raise ControllerMovedError
            conflict = self._apply([self._operations[encoded] for encoded in effect])
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


class InSeries:
    """Calls `policies.evaluate` for one check after another, as a thread of a node does."""

    def __init__(self, policies: Any) -> None:
        self._policies = policies

    async def evaluate(self, calls: Sequence[PolicyCall], results: Results) -> Results:
        ends_s = time.monotonic() + SERIES_S
        for call in calls:
            results.append(await self._policies.evaluate(*call))
            if results[-1] is not None or time.monotonic() > ends_s:
                break
        return results


class NamesErrors:
    """Encodes a response with `encode`, and an error of a whole request as its name."""

    def __init__(self, encode: Callable[..., EnvelopeReply]) -> None:
        self.encode = encode

    async def encode_in_thread(self, *arguments: Any) -> EnvelopeReply:
        return self.encode(*arguments)

    def encode_error(self, _pending: PendingRequest, error: ErrorCode) -> EnvelopeReply:
        return EnvelopeReply(0, error.name.encode(), 0)


class Term:
    """One controller's term over `store`. `happened` lists publications, replies and reloads."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        before: MetadataImage | None = None,
        policies: Any = None,
        **loop: Any,
    ):
        self.store = store or MemoryStore()
        self.happened: list[str] = []
        self.throttled_ms = 0  # the throttle time in the last response
        self.now_s = 1000.0
        self.loop = ControllerLoop(
            store=self.store,
            fence=FENCE,
            image=before or image(),
            outcomes=OutcomeIndex(),
            callbacks=LoopCallbacks(
                publish=self._publish,
                reload=lambda: self._record("reload"),
                bind_authorize=no_authorizer,
                now_s=lambda: self.now_s,
                now_ms=lambda: int(self.now_s * 1000),
            ),
            responses=cast(ResponseEncoder, NamesErrors(self._respond)),
            log=NullEventLog(),
            quotas=MutationQuotas(samples=11, window_s=1),
            policies=None if policies is None else InSeries(policies),
            **loop,
        )
        self._sequence = 0

    async def _publish(self, _image: MetadataImage, changed: frozenset[str]) -> None:
        self._record(f"published {sorted(changed)}")

    def _record(self, event: str) -> None:
        self.happened.append(event)

    def _respond(
        self, pending: PendingRequest, unfinished: frozenset[str], _image: MetadataImage
    ) -> EnvelopeReply:
        self._record(f"answered {pending.identity.sequence}")
        self.throttled_ms = pending.charges.throttle_left_ms(int(self.now_s * 1000))
        codes = error_codes(pending.outcomes, unfinished)
        body = json.dumps({element: ErrorCode(code).name for element, code in codes})
        return EnvelopeReply(0, body.encode(), pending.zxid)

    def submit(
        self,
        api: AdminApi,
        request: Any,
        *,
        sequence: int | None = None,
        version: int = 7,
        deadline_s: float = 2000.0,
        client_id: str | None = None,
        principal: KafkaPrincipal = ANONYMOUS,
        is_large: bool = False,
    ) -> asyncio.Future[EnvelopeReply]:
        """Queue a request. It is a resend if an earlier request had the same `sequence`."""
        self._sequence += 1
        reply: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        self.loop.submit(
            a_pending_request(
                reply,
                api,
                request,
                key=api.api_key,
                version=version,
                identity=RequestIdentity(1, "life", sequence or self._sequence),
                client=a_client(client_id=client_id, principal=principal),
                deadline_s=deadline_s,
                is_large=is_large,
            )
        )
        return reply

    async def run_until(self, *replies: asyncio.Future[EnvelopeReply]) -> list[dict[str, str]]:
        """Run until all requests are answered; return each request's errors by element."""
        running = asyncio.create_task(self.loop.run())
        try:
            for reply in replies:
                await asyncio.wait((running, reply), return_when="FIRST_COMPLETED")
                assert not running.done(), running
        finally:
            running.cancel()
        return [json.loads(reply.result().response_data or b"{}") for reply in replies]

    async def run_until_idle(self) -> None:
        """Run until no request or job is left."""
        running = asyncio.create_task(self.loop.run())
        seen = -1
        while seen != len(self.store.multis) or self.loop.queue_length:
            seen = len(self.store.multis)
            for _ in range(50):  # turns of the event loop, not time
                await asyncio.sleep(0)
        running.cancel()
