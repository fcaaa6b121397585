"""W3: a process that is no longer the controller has no effect.

There are three kinds of effects: the process writes through any of its sessions; it acknowledges
a write that was committed after the end of its term; a broker accepts metadata of an older epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import NONE, Boot, History, Term, boot_of, place_of, row_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge writes, acknowledgements and images."""
    yield from _writes(history, _terms_of(history))
    yield from _acknowledgements(history)
    yield from _images(history)


def _terms_of(history: History) -> dict[Boot, list[Term]]:
    found: dict[Boot, list[Term]] = defaultdict(list)
    for term in history.terms:
        owner = history.sessions.get(term.session)
        if owner is not None:
            found[owner.node, owner.boot].append(term)
    return found


def _writes(history: History, terms: dict[Boot, list[Term]]) -> Iterator[Violation | None]:
    for commit, writes in history.admin_writes:
        owner = history.sessions.get(commit.session)
        if owner is None:
            continue
        own = terms.get((owner.node, owner.boot), [])
        past = [term for term in own if term.until <= commit.zxid]
        if not past or any(term.zxid <= commit.zxid < term.until for term in own):
            yield None
            continue
        yield violation(
            "W3",
            f"zxid/{commit.zxid}",
            [zxid_row(commit.zxid), zxid_row(past[-1].until)],
            f"zxid {commit.zxid}: broker {owner.node} wrote {writes[0].path}, but its epoch "
            f"{past[-1].epoch} had ended at zxid {past[-1].until}",
        )


def _acknowledgements(history: History) -> Iterator[Violation | None]:
    ends = {term.epoch: term.until for term in history.terms}
    for event in history.of_kind["request_decided"]:
        if event["validate_only"] or all(error != NONE for _, error in event["elements"]):
            continue
        until = ends.get(event["epoch"])
        if until is None or event["zxid"] < until:
            yield None
            continue
        yield violation(
            "W3",
            place_of(event),
            [row_of(event), zxid_row(until)],
            f"{event['request_id']}: epoch {event['epoch']} acknowledged it at zxid "
            f"{event['zxid']}, but had ended at zxid {until}",
        )


def _images(history: History) -> Iterator[Violation | None]:
    highest: dict[Boot, int] = {}
    events = [e for e in history.of_kind["image_advanced"] if e["side"] == "broker"]
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        known = highest.get(boot_of(event), event["epoch"])
        highest[boot_of(event)] = max(known, event["epoch"])
        if event["epoch"] >= known:
            yield None
            continue
        yield violation(
            "W3",
            place_of(event),
            [row_of(event)],
            f"broker {event['node']} accepted metadata of epoch {event['epoch']} after epoch "
            f"{known}",
        )
