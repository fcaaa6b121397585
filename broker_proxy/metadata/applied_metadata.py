"""Tracks how far this broker has applied the cluster's metadata, and when it may answer reads.

The controller's updates carry topics. ZooKeeper's notifications announce changes of configs, ACLs
and tokens. A zxid is applied when all updates and all notifications up to it are applied. By
default this module is not used: as in Kafka, writes wait only for the controller, and reads are
answered immediately.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Container
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from broker_proxy.forwarding.controller_requests import Forward, broker_request
from broker_proxy.forwarding.retry import NextStep
from cluster_model.client import Client
from cluster_model.session_state import ConnectionLostError

# The interval of polling and of retries.
_POLL_EVERY_S: Final = 0.02
_CANNOT_REPORT_ZXID: Final = (
    "bridgehead.metadata.reads=controller: the active controller cannot report its metadata zxid "
    "(an old release). This broker answers no reads until a controller that reports its zxid "
    "is active. Finish the upgrade, or set bridgehead.metadata.reads=local until then."
)
_log = logging.getLogger(__name__)


class AppliedMetadata:
    """Tracks the highest applied zxid."""

    def __init__(
        self, catch_up: Callable[[], Awaitable[None]], on_applied: Callable[[int], None]
    ) -> None:
        """`catch_up` applies all notifications that are in ZooKeeper when it is called."""
        self._catch_up = catch_up
        self._on_applied = on_applied
        self._applied = 0
        self._then: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._advanced = asyncio.Event()
        self.zxid = 0

    def cache_applied(self, zxid: int, then: Callable[[], None]) -> None:
        """Record that the metadata cache is at `zxid`.

        `then` is called when ZooKeeper's notifications up to `zxid` are applied as well, unless a
        later call replaces it first. Two calls may have the same zxid: a change of the live brokers
        alone does not increase it.
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
                    await asyncio.sleep(_POLL_EVERY_S)
                    continue
                then()
                self.zxid = target
                advanced, self._advanced = self._advanced, asyncio.Event()
                advanced.set()
                self._on_applied(target)
        finally:
            self._task = None

    async def wait_for(self, zxid: int) -> None:
        """Wait until `zxid` is applied."""
        while self.zxid < zxid:
            await self._advanced.wait()

    def stop(self) -> None:
        """Stop tracking."""
        if self._task is not None:
            self._task.cancel()


class Membership:
    """Tracks whether the controller waits for this broker before it acknowledges a write.

    After a registration, that is certain only once a later update lists this broker as alive. Until
    then the controller may have answered writes without waiting for this broker.
    """

    def __init__(self, broker_id: int, has_contact: Callable[[], bool]) -> None:
        """`has_contact`: whether ZooKeeper's last answer is recent (2/3 of the session timeout)."""
        self._broker_id = broker_id
        self._has_contact = has_contact
        self._is_registered = False
        self._is_listed = False
        # The number of this broker's registration. An update belongs to the registration during
        # which it arrives.
        self.generation = 0

    def registered(self) -> None:
        """Start a new registration."""
        self.generation += 1
        self._is_registered, self._is_listed = True, False

    def lost(self) -> None:
        """End the registration."""
        self._is_registered = self._is_listed = False

    def update_applied(self, live: Container[int], generation: int) -> None:
        """Apply an update that lists the live brokers."""
        if generation == self.generation and self._is_registered:
            self._is_listed = self._broker_id in live

    @property
    def is_current(self) -> bool:
        """True while this broker has applied every write that the controller has acknowledged."""
        return self._is_listed and self._has_contact()


class ReadGate:
    """Delays a read until its response cannot be stale."""

    def __init__(
        self,
        applied_metadata: AppliedMetadata,
        *,
        membership: Membership | None,
        newest: Callable[[], Awaitable[int]] | None,
        timeout_s: float,
    ) -> None:
        """`membership` is given only if writes wait for every broker (blocking=cluster).

        `newest` returns the controller's zxid. It is given only if reads wait until this broker has
        applied that zxid (KIP-590, bridgehead.metadata.reads=controller).
        """
        self._metadata = applied_metadata
        self._membership = membership
        self._newest = newest
        self._timeout_s = timeout_s
        self._is_warned = False  # about a controller that cannot report its zxid

    async def pass_through(self) -> bool:
        """Wait at most `request.timeout.ms`; False when the read must not be answered."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._newest is not None:
                    await self._metadata.wait_for(await self._newest())
                    self._is_warned = False
                # Polled, because nothing notifies this coroutine when `is_current` becomes true.
                while self._membership is not None and not self._membership.is_current:  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_EVERY_S)
        except ApiError as rejection:
            if rejection.error is ErrorCode.UNSUPPORTED_VERSION and not self._is_warned:
                self._is_warned = True
                _log.warning(_CANNOT_REPORT_ZXID)
            return False
        except TimeoutError:
            return False
        return True


class NewestZxid:
    """Requests the zxid of the controller's image. Concurrent reads share one request.

    A read that arrives while a request is in flight waits for the next request: the response to
    the request in flight may be older than what the client has already seen.
    """

    def __init__(
        self,
        forward: Forward,
        broker: Client,
        *,
        request_prefix: str,
    ) -> None:
        self._forward = forward
        self._broker = broker
        self._prefix = request_prefix
        self._numbers = itertools.count(1)
        self._running: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def __call__(self) -> int:
        """Return the zxid of the controller's image at some moment after the call.

        Raises:
            ApiError: REQUEST_TIMED_OUT when no controller answered in time,
                UNSUPPORTED_VERSION when the active controller cannot report its zxid.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[int] | None) -> int:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        return await self._request_zxid()

    async def _request_zxid(self) -> int:
        """Ask the controller for its zxid, with a ListPartitionReassignments request for no topics.

        The controller queues this request with all others. The reply carries the zxid of the
        controller's image.
        """
        number = next(self._numbers)
        header = RequestHeader(
            ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, number, self._broker.client_id
        )
        message = ListPartitionReassignmentsRequest(topics=[])
        # Sent as a client's request: a controller of a release without Envelopes rejects it with an
        # Envelope error. With `made_by_broker` such a controller would execute the request.
        request = broker_request(
            f"{self._prefix}.newest.{number}", header, message, self._broker, made_by_broker=False
        )
        forwarded = await self._forward(request, request.body)
        if forwarded.step in (NextStep.UNKNOWN_SERVER_ERROR, NextStep.CLOSE):  # an Envelope error
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        # A relayed reply has zxid 0 only if an unexpected exception in the controller made the
        # request fail with UNKNOWN_SERVER_ERROR.
        if forwarded.step is not NextStep.RELAY or not forwarded.zxid:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        return forwarded.zxid
