"""Decides and writes the requests of a broker below the bridge release.

The broker also creates the topics that its clients' requests create automatically.

The controller's APIs make the decisions, on the current state of ZooKeeper. No election is needed.
As in a Kafka broker below the bridge release, each element is written in its own multi. Except for
tokens (docs/upgrade.md), the multi checks the znode versions that the decision read. After a
conflict the request is decided again, so no update is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import in_thread, sliced
from cluster_model.acls.authorization import BindAuthorize, no_authorizer
from cluster_model.acls.bindings import AclSet
from cluster_model.direct_writes import CONFIG_WRITES
from cluster_model.image import MetadataImage
from cluster_model.records import PartitionRecord
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.layout import ControllerZnode
from cluster_model.znodes.operations import Operation
from cluster_model.znodes.values import ZnodeContentError
from controller.apis.base import Decision, Results
from controller.direct.reading import read_image
from controller.loop.multis import TOO_LARGE, fits_in_multi
from controller.loop.policy_evaluation import Policies, PolicyEvaluation
from controller.requests.events import error_codes, execution_started, request_decided
from controller.requests.host_names import resolve_hosts
from controller.requests.pending_request import PendingRequest
from controller.store.outcomes import RequestOutcomes, encode_outcomes
from controller.store.plan import plan_operations
from controller.store.port import ContentConflictError, UnknownOutcomeError
from event_log.writer import EventLog
from zookeeper_client.wire import Read, ReadData, ReadResult, ZnodeData

_log = logging.getLogger(__name__)
# After this many conflicts of a request, a conflicting element gets its API's conflict error.
_CONFLICTS_MAX: Final = 50
_RETRY_S: Final = 0.1
_NO_EPOCH: Final = 0  # a direct write has no controller epoch
_OF_KRAFT: Final = CONFIG_WRITES | {ApiKey.ALTER_CLIENT_QUOTAS}
_KRAFT_IS_ACTIVE: Final = "Cannot set entity configs directly when there is a KRaft controller."


class Session(Protocol):
    """The methods of DirectSession that the writer uses."""

    async def read(self, reads: Sequence[Read], /) -> list[ReadResult]:
        """Read many znodes."""
        ...

    async def last_zxid(self) -> int:
        """Return the highest zxid in any reply of the session."""
        ...

    async def encode(self, operations: Sequence[Operation], /) -> list[bytes]:
        """Return the operations' bytes."""
        ...

    async def write(self, outcomes: bytes, operations: Sequence[bytes], /) -> int:
        """Execute all operations or none; return the zxid."""
        ...


@dataclass(frozen=True, slots=True)
class DirectServices:
    """The writer's collaborators, built by the node."""

    bind_authorize: BindAuthorize
    acls: Callable[[], AclSet]  # of this broker
    acls_zxid: Callable[[], int | None]  # None if the ACLs were read at different zxids
    policies: Policies | None
    log: EventLog
    now_s: Callable[[], float]
    now_ms: Callable[[], int]


class DirectWriter:
    """The writer of one broker. Requests run concurrently, their multis one after another."""

    def __init__(self, session: Session, services: DirectServices) -> None:
        self._session = session
        self._services = services

    async def write(self, pending: PendingRequest) -> tuple[Any, int]:
        """Return the response message, and the zxid of the last write.

        Raises:
            ApiError: REQUEST_TIMED_OUT; elements may have been written. STALE_CONTROLLER_EPOCH: a
                KRaft controller owns the configs.
        """
        try:
            async with asyncio.timeout(pending.deadline_s - self._services.now_s()):
                image = await self._execute(pending)
        except (TimeoutError, UnknownOutcomeError) as late:
            _log.warning("%s: unknown outcome: %r", pending.request_id, late)
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from late
        results = Results(pending.outcomes, image)
        message = await in_thread(
            pending.is_large, pending.api.response, pending.context, pending.request, results
        )
        zxid = pending.zxid or image.zxid
        codes = error_codes(pending.outcomes, frozenset())
        self._services.log.append(
            request_decided(pending, codes, epoch=_NO_EPOCH, zxid=zxid, response_sha256=None)
        )
        self._services.log.flush()
        return message, zxid

    async def _execute(self, pending: PendingRequest) -> MetadataImage:
        """Decide and write until every element has its outcome; return the last image."""
        services = self._services
        await resolve_hosts(pending, services.bind_authorize, services.acls())

        while True:
            try:
                await self._check_controller(pending)
                image = await read_image(
                    self._session.read, pending, all_of_it=services.policies is not None
                )
                image = replace(image, zxid=await self._session.last_zxid())
                decision = await _decide(services, pending, image)
                if await self._write(pending, decision, image):
                    return image
            except ConnectionLostError as lost:
                _log.warning("%s waits for ZooKeeper: %s", pending.request_id, lost)
                await asyncio.sleep(_RETRY_S)

    async def _check_controller(self, pending: PendingRequest) -> None:
        """Raise ApiError if the request would change configs that a KRaft controller owns.

        Kafka makes the same check, and only for configs and quotas. A broker below the bridge
        release cannot forward them to KRaft, so the change would be lost.
        """
        if pending.header.api_key in _OF_KRAFT:
            (znode,) = await self._session.read([ReadData(ControllerZnode.path)])
            is_krafts = False
            with contextlib.suppress(ZnodeContentError):  # nobody's, so not KRaft's
                is_krafts = isinstance(znode, ZnodeData) and ControllerZnode.is_krafts(znode.data)
            if is_krafts:
                raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, _KRAFT_IS_ACTIVE)

    async def _write(
        self, pending: PendingRequest, decision: Decision, image: MetadataImage
    ) -> bool:
        """Write the elements that have records; False if a conflict requires a new decision."""
        pending.image_zxid = image.zxid
        async for decided in sliced(decision.elements):
            if decided.element in pending.outcomes:
                continue
            # As in Kafka, the controller writes the states of a new topic's partitions.
            records = [r for r in decided.records if not isinstance(r, PartitionRecord)]
            operations = await self._session.encode(plan_operations(records, image))
            fits = fits_in_multi(operations, decided)
            if not records or not fits:
                pending.outcomes[decided.element] = decided.outcome if fits else TOO_LARGE
                pending.without_effect.add(decided.element)
                continue
            written = {decided.element: decided.outcome}
            entry = RequestOutcomes(pending.identity, pending.request_id, written)
            try:
                pending.zxid = await self._session.write(
                    encode_outcomes(_NO_EPOCH, [entry]), operations
                )
            except ContentConflictError as conflict:
                _log.info("%s conflicts with an external write: %s", pending.request_id, conflict)
                pending.conflicts += 1
                if pending.conflicts < _CONFLICTS_MAX:
                    # Elements without records were decided on a state that has changed, so they
                    # are decided again.
                    for element in pending.without_effect:
                        del pending.outcomes[element]
                    pending.without_effect.clear()
                    return False
                pending.outcomes[decided.element] = pending.api.conflict(decided.element)
                continue
            pending.outcomes |= written
            image = image.replay(records)
        return True


async def _decide(
    services: DirectServices, pending: PendingRequest, image: MetadataImage
) -> Decision:
    """Decide the request on this image, and wait for the verdicts of the policies."""
    evaluated = asyncio.Event()

    async def propose(_: PendingRequest, image: MetadataImage) -> Decision:
        decide, context, outcomes = pending.api.decide, pending.context, pending.outcomes
        return await in_thread(pending.is_large, decide, context, pending.request, image, outcomes)

    policies = PolicyEvaluation(
        services.policies,
        image=lambda: image,
        decide=propose,
        submit=lambda _: evaluated.set(),
        now_s=services.now_s,
    )
    while True:
        # As in Kafka, the broker may create the topics that its clients need.
        bind = no_authorizer if pending.made_by_broker else services.bind_authorize
        pending.new_context(bind, services.acls(), services.now_ms())
        zxid = services.acls_zxid()
        services.log.append(execution_started(pending, _NO_EPOCH, -1 if zxid is None else zxid))
        decision = policies.judge(pending, await propose(pending, image))
        if decision is not None:
            return decision
        await evaluated.wait()
        evaluated.clear()
