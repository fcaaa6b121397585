"""A process that is no longer the controller has no effect.

There are three kinds of effects: the process writes through any of its sessions; it acknowledges
a write that was committed after the end of its term; a broker accepts metadata of an older epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import NONE, Boot, History, Term, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W3",
    name="no_zombie_effect",
    statement="a process that is no longer the controller has no effect",
    witnesses=("commits", "events"),
    row="transactions in which known processes wrote metadata; decisions that acknowledge a "
    "write; images of brokers",
    key="zxid/<zxid> or <node>/<boot>/<seq>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge writes, acknowledgements and images."""
    yield from _writes(history, _terms_of(history))
    yield from _acknowledgements(history)
    yield from _images(history)


def _terms_of(history: History) -> dict[Boot, list[Term]]:
    terms: dict[Boot, list[Term]] = defaultdict(list)
    for term in history.terms:
        owner = history.sessions.get(term.session)
        if owner is not None:
            terms[owner.node, owner.boot].append(term)
    return terms


def _writes(history: History, terms: dict[Boot, list[Term]]) -> Iterator[Violation | None]:
    for commit, writes in history.admin_writes:
        owner = history.sessions.get(commit.session)
        if owner is None:
            continue
        terms_of_boot = terms.get((owner.node, owner.boot), [])
        past = [term for term in terms_of_boot if term.until <= commit.zxid]
        if not past or any(term.zxid <= commit.zxid < term.until for term in terms_of_boot):
            yield None
            continue
        yield SPEC.violation(
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
        yield SPEC.violation(
            place_of(event),
            [row_of(event), zxid_row(until)],
            f"{event['request_id']}: epoch {event['epoch']} acknowledged it at zxid "
            f"{event['zxid']}, but had ended at zxid {until}",
        )


def _images(history: History) -> Iterator[Violation | None]:
    highest: dict[Boot, int] = {}
    events = [e for e in history.of_kind["image_advanced"] if e["side"] == "broker"]
    for event in sorted(events, key=lambda e: (*boot_of(e), e["seq"])):
        highest_epoch = highest.get(boot_of(event), event["epoch"])
        highest[boot_of(event)] = max(highest_epoch, event["epoch"])
        if event["epoch"] >= highest_epoch:
            yield None
            continue
        yield SPEC.violation(
            place_of(event),
            [row_of(event)],
            f"broker {event['node']} accepted metadata of epoch {event['epoch']} after epoch "
            f"{highest_epoch}",
        )


_WRITES: Final = """
terms_of AS (
  SELECT s.run, s.node, s.boot, array_sort(collect_list(struct(t.zxid, t.until, t.epoch))) AS own
  FROM terms t JOIN sessions s ON t.run = s.run AND t.session = s.session
  GROUP BY s.run, s.node, s.boot),
session_terms AS (
  SELECT s.run, s.session, s.node, t.own FROM sessions s
  LEFT JOIN terms_of t ON s.run = t.run AND s.node = t.node AND s.boot = t.boot),
writes AS (
  SELECT /*+ BROADCAST(o) */ w.run, w.zxid, w.path, o.node,
    coalesce(exists(o.own, t -> t.zxid <= w.zxid AND w.zxid < t.until), false) AS in_term,
    filter(o.own, t -> t.until <= w.zxid) AS past
  FROM admin_writes w JOIN session_terms o ON w.run = o.run AND w.session = o.session),
late_writes AS (
  SELECT run, CASE WHEN NOT in_term AND size(past) > 0 THEN concat('zxid/', zxid) END AS key,
    array(concat('zxid/', zxid), concat('zxid/', get(past, size(past) - 1).until)) AS rows,
    concat('zxid ', zxid, ': broker ', node, ' wrote ', path, ', but its epoch ',
      get(past, size(past) - 1).epoch, ' had ended at zxid ',
      get(past, size(past) - 1).until) AS sentence
  FROM writes)"""

_ACKNOWLEDGEMENTS: Final = f"""
ends AS (SELECT run, epoch, max_by(until, zxid) AS until FROM terms GROUP BY run, epoch),
decided AS (
  SELECT /*+ BROADCAST(t) */ e.run, e.node, e.boot, e.seq, e.request_id, e.epoch, e.zxid, t.until
  FROM request_decided e LEFT JOIN ends t ON e.run = t.run AND e.epoch = t.epoch
  WHERE NOT e.validate_only
    AND exists(e.elements, x -> x.error = 0)),
late_acknowledgements AS (
  SELECT run, CASE WHEN zxid >= until THEN {sql.place_of("decided")} END AS key,
    array({sql.row_of("decided")}, concat('zxid/', until)) AS rows,
    concat(request_id, ': epoch ', epoch, ' acknowledged it at zxid ', zxid,
      ', but had ended at zxid ', until) AS sentence
  FROM decided)"""

_IMAGES: Final = f"""
taken AS (
  SELECT run, node, boot, seq, epoch, max(epoch) OVER (PARTITION BY run, node, boot ORDER BY seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS known
  FROM image_advanced WHERE side = 'broker'),
old_images AS (
  SELECT run, CASE WHEN epoch < known THEN {sql.place_of("taken")} END AS key,
    array({sql.row_of("taken")}) AS rows,
    concat('broker ', node, ' accepted metadata of epoch ', epoch, ' after epoch ', known)
      AS sentence
  FROM taken)"""

INPUTS: Final = (
    *("gold/admin_writes", "silver/terms", "silver/sessions"),
    *("silver/request_decided", "silver/image_advanced"),
)
SQL: Final = f"""
WITH {_WRITES}, {_ACKNOWLEDGEMENTS}, {_IMAGES}
SELECT * FROM late_writes UNION ALL SELECT * FROM late_acknowledgements
UNION ALL SELECT * FROM old_images
"""
