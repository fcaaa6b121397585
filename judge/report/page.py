"""The page that `judge --html` writes: one run, without Spark.

The rows have the columns of the pipeline's tables gold/timeline and gold/controller_terms, as far
as the shared sections use them.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from judge.history import Event, History, boot_of
from judge.report import sections
from judge.report.html import document, mark, table
from judge.report.sections import Rows
from judge.verdicts import Judgement, Verdict

_SLICES: Final = 240
_NARROWEST_MS: Final = 100  # in narrower slices, rates are noise
_GAPS_MAX: Final = 20
_VIOLATIONS_MAX: Final = 40


def page(history: History, judgements: Sequence[Judgement], verdict: Verdict, folder: str) -> str:
    """Return the report on a run, whose evidence is in `folder`."""
    run = history.run
    named = shlex.quote(folder)
    facts = {
        "scenario": run.scenario or "none",
        "seed": "none" if run.seed is None else str(run.seed),
        "versions": ", ".join(f"{k} {v}" for k, v in sorted(run.versions.items())) or "unknown",
        "evidence": folder,
        "repeat with": f"bridgehead judge {named} --html FILE",
        "look at the run with": f"bridgehead ui {named}",
        "write its page with": f"bridgehead ui {named} --export run.html",
    }
    rows = [judgement.row for judgement in judgements]
    violations = [
        {"property": violation.property, "sentence": violation.sentence, "rows": violation.rows}
        for judgement in judgements
        for violation in judgement.violations[:_VIOLATIONS_MAX]
    ]
    tables = {"timeline": timeline(history), "terms": terms(history), "faults": faults(history)}
    note = f"At most {_VIOLATIONS_MAX} of each property; `bridgehead judge --json` has all of them."
    body = (
        f"<h1>{mark(verdict)} run {escape(run.run_id)}</h1>"
        + table(("", ""), facts.items())
        + sections.over_time(tables)
        + sections.failover(tables["terms"])
        + sections.verdicts(rows)
        + sections.violations(rows, violations, note)
        + _gaps(history.evidence.gaps)
    )
    return document(f"Bridgehead: {run.run_id}", body)


def _gaps(gaps: Mapping[str, Sequence[str]]) -> str:
    lines = [(witness, line) for witness, of_witness in gaps.items() for line in of_witness]
    if not lines:
        return ""
    left = len(lines) - _GAPS_MAX
    more = f"<p class=quiet>{left:,} more are not shown.</p>" if left > 0 else ""
    return "<h2>Gaps in the evidence</h2>" + table(("witness", "gap"), lines[:_GAPS_MAX]) + more


def faults(history: History) -> Rows:
    """Return the faults that the harness injected, in order of time."""
    return sorted(history.of_kind["fault_injected"], key=lambda fault: int(fault["wall_ms"]))


def timeline(history: History) -> Rows:
    """Return the requests and latencies of each slice that has requests, in order of time."""
    received = history.of_kind["request_received"]
    if not received:
        return []
    first_ms = min(event["wall_ms"] for event in received)
    span_ms = max(event["wall_ms"] for event in received) - first_ms
    width = max(span_ms // _SLICES + 1, _NARROWEST_MS)
    responded = {event["request_id"]: event for event in history.of_kind["responded"]}
    attempts: dict[str, int] = defaultdict(lambda: 1)
    for event in history.of_kind["forward_sent"]:
        attempts[event["request_id"]] = max(attempts[event["request_id"]], event["attempt"])
    slices: dict[int, list[Event]] = defaultdict(list)
    for event in received:
        slices[(event["wall_ms"] - first_ms) // width].append(event)
    return [
        {"slice_ms": first_ms + at * width, "width_ms": width}
        | _slice(slices[at], responded, attempts)
        for at in sorted(slices)
    ]


def _slice(
    received: Sequence[Event], responded: Mapping[str, Event], attempts: Mapping[str, int]
) -> dict[str, Any]:
    ends = [(event, responded.get(event["request_id"])) for event in received]
    forwarded = [(event, end) for event, end in ends if event["route"] == "FORWARD"]
    waits_us = sorted(
        (end["mono_ns"] - event["mono_ns"]) // 1000 for event, end in forwarded if end is not None
    )
    return {
        "forwarded": len(forwarded),
        "others": len(received) - len(forwarded),
        "resends": sum(attempts[event["request_id"]] - 1 for event in received),
        "unfinished": sum(end is None or end["closed"] for _, end in ends),
        "p50_us": _percentile(waits_us, 0.5),
        "p99_us": _percentile(waits_us, 0.99),
    }


def _percentile(ascending: Sequence[int], share: float) -> float | None:
    """Return a percentile, interpolated linearly like the one of Spark; None without values."""
    if not ascending:
        return None
    place = share * (len(ascending) - 1)
    low = int(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)


def terms(history: History) -> Rows:
    """Return the terms of controllers, with the times that the chart of failovers needs."""
    active = {
        (*boot_of(event), event["epoch"]): event
        for event in reversed(history.of_kind["became_active"])
    }
    resigned = {
        (*boot_of(event), event["epoch"]): event["wall_ms"]
        for event in reversed(history.of_kind["resigned"])
    }
    last_ms: dict[tuple[str, str], int] = {}
    for event in history.events:
        last_ms[boot_of(event)] = max(event["wall_ms"], last_ms.get(boot_of(event), 0))
    closed_ms = {
        commit.session: commit.time_ms
        for commit in reversed(history.evidence.commits)
        if commit.kind == "close_session"
    }
    first: dict[int, Event] = {}
    for event in history.of_kind["request_decided"]:
        earlier = first.get(event["epoch"])
        if earlier is None or event["wall_ms"] < earlier["wall_ms"]:
            first[event["epoch"]] = event
    rows = []
    for term in history.terms:
        owner = history.sessions.get(term.session)
        boot = (owner.node, owner.boot) if owner is not None else ("", "")
        began, decided = active.get((*boot, term.epoch)), first.get(term.epoch)
        received = history.received.get(decided["request_id"]) if decided is not None else None
        ends = (resigned.get((*boot, term.epoch)), last_ms.get(boot))
        rows.append(
            {
                "epoch": term.epoch,
                "node": boot[0],
                "active_ms": began["wall_ms"] if began is not None else None,
                "loaded_ms": began["loaded_ms"] if began is not None else None,
                "closed_ms": closed_ms.get(term.session),
                "first_decision_ms": decided["wall_ms"] if decided is not None else None,
                "first_received_ms": received["wall_ms"] if received is not None else None,
                "ended_ms": min((end for end in ends if end is not None), default=None),
            }
        )
    return rows
