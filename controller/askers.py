"""For whom a forwarded request is decided: for the client, as the Envelope says.

Three bugs of this question are seeded here (`Mutant`), so that tests can show that they are
caught; property F1 holds what the controller saw against what the broker authenticated.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from controller.open_envelope import Opened
from controller.services import THIS_PROCESS, Sender
from controller.store.port import Mutant


class Askers:
    """Says who asks. One per candidate."""

    def __init__(self, mutants: Collection[Mutant]) -> None:
        self._mutants = frozenset(mutants)
        self._previous: Opened | None = None

    def of(self, opened: Opened, sender: Sender) -> Opened:
        """Return the request with its asker: unchanged, unless a bug was seeded."""
        if not self._mutants:
            return opened
        asked, previous = opened, self._previous
        self._previous = opened
        if sender.host == THIS_PROCESS:
            return opened  # Nothing was forwarded.
        if Mutant.DROP_PRINCIPAL in self._mutants:
            asked = replace(asked, principal=sender.principal)
        if Mutant.SWAP_PRINCIPALS in self._mutants and previous is not None:
            asked = replace(asked, principal=previous.principal)
        if Mutant.BROKER_HOST in self._mutants:
            asked = replace(asked, client_host=sender.host)
        return asked
