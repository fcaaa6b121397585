"""The kinds of events that the page knows. No other module and no script has their names.

A kind has a key, which our code and the page's scripts use, and the name in the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

CLIENT, BROKER, CONTROLLER, ZOOKEEPER, HARNESS = range(5)
LANES: Final = ("client", "broker", "controller", "zookeeper", "harness")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event. `lane` is where the diagram draws it."""

    key: str
    name: str  # in the evidence
    lane: int
    title: str  # in the diagram
    notable: bool = False  # the page lists it beside the topology


KINDS: Final = (
    Kind("other", "", BROKER, "event"),
    Kind("transaction", "", ZOOKEEPER, "transaction", notable=True),
    Kind("received", "request_received", BROKER, "request", notable=True),
    Kind("responded", "responded", BROKER, "response", notable=True),
    Kind("forward_sent", "forward_sent", BROKER, "Envelope sent", notable=True),
    Kind("forward_replied", "forward_replied", BROKER, "reply to the Envelope", notable=True),
    Kind("envelope_received", "envelope_received", CONTROLLER, "Envelope received", notable=True),
    Kind("envelope_rejected", "envelope_rejected", CONTROLLER, "Envelope rejected", notable=True),
    Kind("executing", "execution_started", CONTROLLER, "execution starts"),
    Kind("decided", "request_decided", CONTROLLER, "decision", notable=True),
    Kind("commit_sent", "commit_sent", CONTROLLER, "multi sent", notable=True),
    Kind("committed", "commit_acknowledged", CONTROLLER, "multi acknowledged", notable=True),
    Kind("commit_unknown", "commit_unknown", CONTROLLER, "outcome unknown", notable=True),
    Kind("image", "image_advanced", BROKER, "metadata updated"),
    Kind("session_opened", "session_opened", BROKER, "session opened", notable=True),
    Kind("session_lost", "session_lost", BROKER, "session lost", notable=True),
    Kind("claimed", "claim_sent", CONTROLLER, "candidacy", notable=True),
    Kind("active", "became_active", CONTROLLER, "becomes controller", notable=True),
    Kind("resigned", "resigned", CONTROLLER, "resigns", notable=True),
    Kind("registered", "broker_registered", BROKER, "registered", notable=True),
    Kind("started", "started", BROKER, "process started", notable=True),
    Kind("level", "protocol_level", BROKER, "protocol level"),
    Kind("stopped", "stopped", BROKER, "process stopped", notable=True),
    Kind("ending", "run_ending", HARNESS, "stop begins"),
    Kind("ended", "node_ended", HARNESS, "process ended", notable=True),
    Kind("fault", "fault_injected", HARNESS, "fault", notable=True),
    Kind("healed", "fault_healed", HARNESS, "fault healed", notable=True),
    Kind("rule_acted", "fault_rule_acted", BROKER, "fault rule acts", notable=True),
    Kind("connected", "connected", BROKER, "client connected"),
    Kind("disconnected", "disconnected", BROKER, "client disconnected"),
    Kind("authenticated", "authenticated", BROKER, "client authenticated"),
    Kind("not_authenticated", "authentication_failed", BROKER, "authentication failed"),
    Kind("login_expired", "session_expired", BROKER, "login expired"),
    Kind("channel_rejected", "channel_rejected", BROKER, "stream rejected"),
    Kind("auto_created", "topics_auto_created", BROKER, "topics created automatically"),
    Kind("records", "records_acknowledged", BROKER, "records acknowledged"),
    Kind("log_held", "log_held", BROKER, "log reported"),
    Kind("offsets", "offsets_committed", BROKER, "offsets committed"),
    Kind("offsets_removed", "offsets_removed", BROKER, "offsets removed"),
    Kind("offsets_held", "offsets_held", BROKER, "offsets reported"),
    Kind("metrics", "metrics_snapshot", BROKER, "metrics"),
    Kind("invoked", "client_invoked", CLIENT, "operation begins"),
    Kind("completed", "client_completed", CLIENT, "operation ends"),
    Kind("metadata_write", "metadata_write", CLIENT, "admin request of a rehearsal"),
    Kind("metadata_held", "metadata_held", CLIENT, "metadata reported"),
)
NUMBERS: Final = {kind.key: number for number, kind in enumerate(KINDS)}
NUMBERS_BY_NAME: Final = {kind.name: number for number, kind in enumerate(KINDS) if kind.name}


def described() -> list[dict[str, Any]]:
    """Return the kinds for the page's scripts, in the order of their numbers."""
    return [
        {"key": kind.key, "lane": kind.lane, "title": kind.title, "notable": kind.notable}
        for kind in KINDS
    ]
