"""What a forwarded request asks, and for whom: as the client wrote it, for the client.

The bugs of this question are seeded here (`Mutant`), so that tests can show that they are caught;
properties F1 and F2 hold what the controller saw against what the broker did.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from bridgehead.kafka_wire.codec import decode_request, encode_request
from bridgehead.kafka_wire.headers import decode_request_header
from controller.open_envelope import Opened
from controller.services import THIS_PROCESS, Sender
from controller.store.port import Mutant
from envelope.messages import Envelope

_OWN_TIMEOUT_MS: Final = 12_345


class Askers:
    """Says who asks. One per candidate."""

    def __init__(self, mutants: Collection[Mutant]) -> None:
        self._mutants = frozenset(mutants)
        self._previous: Opened | None = None

    def received(self, envelope: Envelope) -> Envelope:
        """Return an Envelope as it came in, unless a bug was seeded."""
        if Mutant.FILL_IN_DEFAULT not in self._mutants:
            return envelope
        header, _ = decode_request_header(envelope.request_header, envelope.dialect)
        of = (header.api_key, header.api_version)
        request = decode_request(*of, envelope.request_data, dialect=envelope.dialect)
        if hasattr(request, "timeout_ms"):
            request.timeout_ms = _OWN_TIMEOUT_MS
        body = encode_request(*of, request, dialect=envelope.dialect)
        return replace(envelope, request_data=body)

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
