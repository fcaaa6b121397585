"""Named points in the code of a node at which a fault can hold the node's process.

Production code has no failpoints. If a fault needs them, the nodes are composed of subclasses that
have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from controller.services import Sender
from controller.store.port import Committed, ContentConflictError, Fence
from controller.store.zookeeper import ZooKeeperStore
from controller.term.term import Term
from envelope.messages import Envelope, EnvelopeReply
from node.collaborators import Collaborators

ENVELOPE_RECEIVED: Final = "controller.envelope.received"
COMMIT_BEFORE_SEND: Final = "controller.commit.before_send"
COMMIT_AFTER_REPLY: Final = "controller.commit.after_reply"
REPLY_BEFORE: Final = "controller.reply.before"
ELECTION_LOADING: Final = "election.loading"
FORWARD_BEFORE_SEND: Final = "broker.forward.before_send"
FORWARD_AFTER_REPLY: Final = "broker.forward.after_reply"

Reached = Callable[[str], Awaitable[None]]
"""Called with the name of a failpoint; holds the process if the failpoint is armed."""


def with_failpoints(production: Collaborators, reached: Reached) -> Collaborators:
    """Return constructors of objects that call `reached` at each failpoint."""

    class Store(production.store):  # type: ignore[name-defined, misc]
        """Commits, with a failpoint before and after."""

        async def commit_pipelined(
            self, fence: Fence, effects: Sequence[Sequence[bytes]]
        ) -> tuple[list[Committed], ContentConflictError | None]:
            await reached(COMMIT_BEFORE_SEND)
            committed: tuple[list[Committed], ContentConflictError | None]
            committed = await super().commit_pipelined(fence, effects)
            await reached(COMMIT_AFTER_REPLY)
            return committed

    class HeldController(production.controller):  # type: ignore[name-defined, misc]
        """Loads the state and handles Envelopes, with failpoints."""

        async def _load(self, store: ZooKeeperStore, fence: Fence, elected_ms: float) -> Term:
            await reached(ELECTION_LOADING)
            term: Term = await super()._load(store, fence, elected_ms)
            return term

        async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
            await reached(ENVELOPE_RECEIVED)
            reply: EnvelopeReply = await super().handle(envelope, sender)
            await reached(REPLY_BEFORE)
            return reply

    class Forwarding(production.forwarding):  # type: ignore[name-defined, misc]
        """Sends Envelopes, with a failpoint before and after."""

        async def _attempt(self, *arguments: Any) -> EnvelopeReply | None:
            await reached(FORWARD_BEFORE_SEND)
            reply: EnvelopeReply | None = await super()._attempt(*arguments)
            await reached(FORWARD_AFTER_REPLY)
            return reply

    return replace(production, store=Store, controller=HeldController, forwarding=Forwarding)
