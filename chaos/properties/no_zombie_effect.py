"""W3: a process that was superseded as controller has no effect any more.

Three ways to have one: a write through any session of the process, the acknowledgement of a write
that stands for a transaction after its term, and a broker that takes metadata of an older epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from chaos.history import NONE, Boot, History, Term, boot_of, place_of, row_of
from chaos.properties.breach import violation, zxid
from chaos.verdicts import Finding, Property
from event_log.promises import Violation


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
            [zxid(commit.zxid), zxid(past[-1].until)],
            f"zxid {commit.zxid}: broker {owner.node} wrote {writes[0].path} after epoch "
            f"{past[-1].epoch + 1} had begun at zxid {past[-1].until}",
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
            [row_of(event), zxid(until)],
            f"{event['request_id']} was acknowledged by epoch {event['epoch']} as of zxid "
            f"{event['zxid']}; that epoch ended at zxid {until}",
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
            f"broker {event['node']} took metadata of epoch {event['epoch']} after epoch {known}",
        )


def check(history: History) -> Finding:
    """Judge writes, acknowledgements and images."""
    judged = [
        *_writes(history, _terms_of(history)),
        *_acknowledgements(history),
        *_images(history),
    ]
    return Finding(len(judged), tuple(each for each in judged if each is not None))


PROPERTY: Final = Property("W3", check)
