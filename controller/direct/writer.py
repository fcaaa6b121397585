"""Decides and writes what a broker below the bridge release is asked to write.

The decisions are those of the controller's APIs, on what ZooKeeper holds now; only the office is
missing. Each element is a multi of its own, as each was a write of its own in such a broker, and
demands the versions that were read: whoever wrote in between has this decided anew, so that no
update is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.acls import AclSet
from cluster_model.authorization import BindAuthorize
from cluster_model.image import MetadataImage
from cluster_model.session_state import ConnectionLostError
from cluster_model.znode_operations import Operation
from controller.apis.base import Decision
from controller.consultations import Consultations, Policies
from controller.direct.reading import read_image
from controller.host_names import with_hosts
from controller.store.outcomes import RequestOutcomes, encode_outcomes
from controller.store.plan import plan_operations
from controller.store.port import ContentConflictError, UnknownOutcomeError
from controller.work import TOO_LARGE, Work, execution_started, fits_a_multi, told_codes
from event_log.events import RequestDecided
from event_log.writer import EventLog
from zookeeper_client.wire import Read, ReadResult

_log = logging.getLogger(__name__)
# Of one request; then it is told what its API tells of a foreign write.
_CONFLICTS_MAX: Final = 50
_AGAIN_S: Final = 0.1
_NO_OFFICE: Final = 0  # in place of an epoch


class Session(Protocol):
    """What the writer needs of a session; see controller.direct.session."""

    async def read(self, reads: Sequence[Read], /) -> list[ReadResult]:
        """Read many znodes."""
        ...

    async def last_zxid(self) -> int:
        """Return the newest transaction that was read of."""
        ...

    async def encode(self, operations: Sequence[Operation], /) -> list[bytes]:
        """Return operations as bytes."""
        ...

    async def write(self, outcomes: bytes, operations: Sequence[bytes], /) -> int:
        """Execute all operations or none; return the zxid."""
        ...


@dataclass(frozen=True, slots=True)
class DirectServices:
    """What the node hands in."""

    bind_authorize: BindAuthorize
    acls: Callable[[], AclSet]  # as this broker knows them
    acls_as_of: Callable[[], int | None]  # the zxid; None: they are of no one moment just now
    policies: Policies | None
    log: EventLog
    now_s: Callable[[], float]
    now_ms: Callable[[], int]


class DirectWriter:
    """One broker's. Requests go on beside each other; their multis follow one another."""

    def __init__(self, session: Session, services: DirectServices) -> None:
        self._session = session
        self._services = services

    async def write(self, work: Work) -> tuple[Any, int]:
        """Return the response message, and the zxid that it stands for.

        Raises:
            ApiError: REQUEST_TIMED_OUT. Some of it may have been written: nobody knows.
        """
        try:
            async with asyncio.timeout(work.deadline_s - self._services.now_s()):
                image = await self._done(work)
        except (TimeoutError, UnknownOutcomeError) as late:
            _log.warning("%s: its end is not known: %r", work.context.request_id, late)
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from late
        message = work.api.answer(
            work.context, work.request, work.outcomes, image, unfinished=frozenset()
        )
        zxid = work.zxid or image.zxid
        self._services.log.append(_decided(work, zxid))
        self._services.log.flush()
        return message, zxid

    async def _done(self, work: Work) -> MetadataImage:
        """Decide and write until every element has its outcome; return the last image."""
        services = self._services
        work.context = await with_hosts(
            work.context, work.request, services.bind_authorize, services.acls()
        )
        asked = _Turns(services, work)
        while True:
            try:
                image = await read_image(
                    self._session.read, work, everything=services.policies is not None
                )
                image = replace(image, zxid=await self._session.last_zxid())
                decision = await asked.decide(image)
                if await self._written(work, decision, image):
                    return image
            except ConnectionLostError as lost:
                _log.warning("%s waits for ZooKeeper: %s", work.context.request_id, lost)
                await asyncio.sleep(_AGAIN_S)

    async def _written(self, work: Work, decision: Decision, image: MetadataImage) -> bool:
        """Write what has records, element by element; False: it must be decided anew."""
        work.image_zxid = image.zxid
        for decided in decision.elements:
            if decided.element in work.outcomes:
                continue
            operations = await self._session.encode(plan_operations(decided.records, image))
            fits = fits_a_multi(operations, decided)
            if not decided.records or not fits:
                work.outcomes[decided.element] = decided.outcome if fits else TOO_LARGE
                work.without_effect.add(decided.element)
                continue
            told = {decided.element: decided.outcome}
            entry = RequestOutcomes(work.identity, work.context.request_id, told)
            try:
                work.zxid = await self._session.write(encode_outcomes(0, [entry]), operations)
            except ContentConflictError as conflict:
                _log.info("%s met a foreign write: %s", work.context.request_id, conflict)
                work.meetings += 1
                if work.meetings < _CONFLICTS_MAX:
                    # What had no effect was judged on a state that is no more.
                    for element in work.without_effect:
                        del work.outcomes[element]
                    work.without_effect.clear()
                    return False
                work.outcomes[decided.element] = work.api.conflict(decided.element)
                continue
            work.outcomes |= told
            image = image.replay(decided.records)
        return True


class _Turns:
    """One request's decisions, with what policies say to them."""

    def __init__(self, services: DirectServices, work: Work) -> None:
        self._services = services
        self._work = work
        self._answered = asyncio.Event()
        self._policies = Consultations(
            services.policies, submit=lambda _: self._answered.set(), now_s=services.now_s
        )

    async def decide(self, image: MetadataImage) -> Decision:
        """Decide on this image, once its policies have answered."""
        work, services = self._work, self._services
        while True:
            work.bind(services.bind_authorize, services.acls(), services.now_ms())
            as_of = services.acls_as_of()
            services.log.append(execution_started(work, _NO_OFFICE, -1 if as_of is None else as_of))
            decision = work.api.decide(work.context, work.request, image, work.outcomes)
            self._answered.clear()
            judged = self._policies.judge(work, decision, image)
            if judged is not None:
                return judged
            await self._answered.wait()


def _decided(work: Work, zxid: int) -> RequestDecided:
    context = work.context
    return RequestDecided(
        request_id=context.request_id,
        identity=work.identity,
        api_key=context.api_key,
        principal=str(context.principal),
        epoch=_NO_OFFICE,
        image_zxid=work.image_zxid,
        zxid=zxid,
        elements=told_codes(work.outcomes, frozenset()),
        unchanged=sorted(work.without_effect),
        error=int(ErrorCode.NONE),
        validate_only=bool(getattr(work.request, "validate_only", False)),
        answer_sha256=None,  # No Envelope carried it.
    )
