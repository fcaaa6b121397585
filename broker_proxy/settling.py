"""Up to where this broker has applied everything, and when it may answer reads.

A broker learns of topics from the controller's updates, and of configurations and the like from
ZooKeeper's notifications. It has *settled* at a zxid when it has applied both up to there. Nothing
of this is asked while writes wait for the controller alone and reads are answered as they come,
which is how Kafka does it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Container
from typing import Final

from bridgehead.kafka_wire.codec import encode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.attempt import Step
from broker_proxy.forwarding import Forwarded
from cluster_model.session_state import ConnectionLostError

_LIST_PARTITION_REASSIGNMENTS: Final = 46
# Between two looks of something that nobody announces.
_LOOK_AGAIN_S: Final = 0.02
_CANNOT_BE_ASKED: Final = (
    "bridgehead.metadata.reads=controller: the controller in office cannot say as of when it is "
    "(an old release); reads are refused here until another one is in office. Finish the upgrade, "
    "or set bridgehead.metadata.reads=local meanwhile."
)
_log = logging.getLogger(__name__)


class Settling:
    """Follows the metadata cache, with ZooKeeper's notifications behind it."""

    def __init__(
        self, catch_up: Callable[[], Awaitable[None]], on_settled: Callable[[int], None]
    ) -> None:
        """`catch_up` returns when every notification that ZooKeeper holds by now is applied."""
        self._catch_up = catch_up
        self._on_settled = on_settled
        self._applied = 0
        self._then: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self.zxid = 0

    def applied(self, zxid: int, then: Callable[[], None]) -> None:
        """The cache stands at `zxid`; `then` is called once the notifications are applied, too.

        An update that names other live brokers comes at the zxid of the one before it.
        """
        self._applied, self._then = max(self._applied, zxid), then
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            while self._then is not None:
                target, then, self._then = self._applied, self._then, None
                try:
                    await self._catch_up()
                except ConnectionLostError:
                    self._then = self._then or then
                    await asyncio.sleep(_LOOK_AGAIN_S)
                    continue
                then()
                self.zxid = target
                moved, self._moved = self._moved, asyncio.Event()
                moved.set()
                self._on_settled(target)
        finally:
            self._task = None

    async def until(self, zxid: int) -> None:
        """Wait until this broker has settled at `zxid`."""
        while self.zxid < zxid:
            await self._moved.wait()

    def stop(self) -> None:
        """Follow no more."""
        if self._task is not None:
            self._task.cancel()


class Standing:
    """Whether the controller waits for this broker: registered, seen, and not out of touch.

    A registration lost and made again is another one: until an update that came afterwards names
    this broker as alive, answers may have been given without it.
    """

    def __init__(self, broker_id: int, in_touch: Callable[[], bool]) -> None:
        """`in_touch`: two thirds of the session have not yet passed without a word."""
        self._broker_id = broker_id
        self._in_touch = in_touch
        self._is_registered = False
        self._is_seen = False
        self.generation = 0  # of the registration; an update belongs to that in which it came

    def registered(self) -> None:
        """The broker is registered, perhaps again."""
        self.generation += 1
        self._is_registered, self._is_seen = True, False

    def lost(self) -> None:
        """The registration is gone."""
        self._is_registered = self._is_seen = False

    def told(self, live: Container[int], generation: int) -> None:
        """An update was applied that names these brokers as alive."""
        if generation == self.generation and self._is_registered:
            self._is_seen = self._broker_id in live

    @property
    def is_good(self) -> bool:
        """True while every answered write is known to this broker."""
        return self._is_seen and self._in_touch()


class ReadGate:
    """Lets a read pass when its answer will not be stale."""

    def __init__(
        self,
        settling: Settling,
        *,
        standing: Standing | None,
        newest: Callable[[], Awaitable[int]] | None,
        timeout_s: float,
    ) -> None:
        """`standing`: where answers wait for every broker. `newest`: where reads ask first."""
        self._settling = settling
        self._standing = standing
        self._newest = newest
        self._timeout_s = timeout_s
        self._is_told = False  # of a controller that cannot be asked

    async def pass_through(self) -> bool:
        """Wait, `request.timeout.ms` at most; False: this broker cannot tell, hang up."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._newest is not None:
                    await self._settling.until(await self._newest())
                    self._is_told = False
                # Nobody announces that ZooKeeper was heard again.
                while self._standing is not None and not self._standing.is_good:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except ApiError as refused:
            if refused.error is ErrorCode.UNSUPPORTED_VERSION and not self._is_told:
                self._is_told = True
                _log.warning(_CANNOT_BE_ASKED)
            return False
        except TimeoutError:
            return False
        return True


class NewestZxid:
    """Asks the controller as of which transaction it answers; many readers ask together.

    Who comes while the question is under way waits for the next one: its answer may be older than
    what the reader was told before it asked.
    """

    def __init__(
        self,
        forward: Callable[[ClientRequest, bytes], Awaitable[Forwarded]],
        broker: ClientConnectionInfo,
        *,
        broker_id: int,
        request_prefix: str,
    ) -> None:
        self._forward = forward
        self._broker = broker
        self._client_id = str(broker_id)
        self._prefix = request_prefix
        self._numbers = itertools.count(1)
        self._running: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def __call__(self) -> int:
        """Return the zxid of the controller's image, as of some moment after the call.

        Raises:
            ApiError: REQUEST_TIMED_OUT: no controller answered in time. UNSUPPORTED_VERSION: the
                one in office cannot be asked.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[int] | None) -> int:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        return await self._ask()

    async def _ask(self) -> int:
        """List no reassignments: a question that changes nothing, and waits its turn."""
        number = next(self._numbers)
        header = RequestHeader(_LIST_PARTITION_REASSIGNMENTS, 0, number, self._client_id)
        message = ListPartitionReassignmentsRequest(topics=[])
        request = ClientRequest(
            request_id=f"{self._prefix}.newest.{number}",
            header=header,
            header_bytes=encode_request_header(header),
            body=encode_request(header.api_key, header.api_version, message),
            connection=self._broker,
            received_ns=0,
        )
        forwarded = await self._forward(request, request.body)
        if forwarded.step in (Step.UNKNOWN_SERVER_ERROR, Step.CLOSE):  # It opens no Envelope.
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if forwarded.step is not Step.RELAY or not forwarded.zxid:  # 0: nothing was decided.
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        return forwarded.zxid
