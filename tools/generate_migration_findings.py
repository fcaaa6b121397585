"""Generates the page about the findings of `bridgehead rehearse scan`."""

from __future__ import annotations

from typing import Final

from rehearse.checks import THEMES
from rehearse.findings import KAFKA_VERSIONS, Evidence, Outcome, Rule
from rehearse.seeds import SEEDS
from tools.generate_reference import MARK

_INTRODUCTION: Final = """\
`bridgehead rehearse scan` ([guide](guides/from-zookeeper-to-kraft.md#scan)) has one rule for each
row of these tables. A rule names what Kafka's migration from ZooKeeper to KRaft does with odd
metadata. The column *Kafka* has what happens to it with 3.9.1, and with 3.9.2 if it differs:

- *keeps it*, *changes it*: it is in KRaft, as it was or with another value.
- *loses it*: it is not in KRaft, and stays in ZooKeeper. *deletes it*: it is removed from
  ZooKeeper, too.
- *waits*: the controller waits for ever, before it takes `/controller`. The ZooKeeper controller
  goes on.
- *is stuck*: the controller owns `/controller`, and the brokers are never told.
- *ends*: the process of the controller (or, for a broker's properties, of the broker) ends. The
  controller owns `/controller` then: no changes are possible until the cause is repaired and the
  controller has started again.

Rules without *(source)* were observed with a live controller; those with it follow from Kafka's
source.\
"""
_SEEDS: Final = """\
The rehearsal's tests give each of these seeded inconsistencies to a live controller, and compare
what happens with the finding's row (`rehearse/seeds.py`):\
"""
_DOES: Final = {
    Outcome.KEPT: "keeps it",
    Outcome.CHANGED: "changes it",
    Outcome.LOST: "loses it",
    Outcome.DELETED: "deletes it",
    Outcome.WAITS: "waits",
    Outcome.STUCK: "is stuck",
    Outcome.DIES: "ends",
}


def migration_findings_page() -> str:
    """Return the page."""
    page = ["# Findings before a migration to KRaft", "", MARK, "", *_INTRODUCTION.splitlines()]
    for theme, rules in THEMES.items():
        page += ["", f"## {theme[0].upper()}{theme[1:]}", ""]
        page += ["| finding | what | Kafka | its log | remedy |", "|---|---|---|---|---|"]
        page += [_row(rule) for rule in rules]
    page += ["", "## Seeded inconsistencies", "", *_SEEDS.splitlines(), ""]
    page += ["| seed | what has happened | finding |", "|---|---|---|"]
    page += [f"| `{seed.name}` | {seed.what} | `{seed.rule}` |" for seed in SEEDS]
    return "\n".join([*page, ""])


def _row(rule: Rule) -> str:
    outcomes = [_DOES[rule.outcome_in(kafka)] for kafka in KAFKA_VERSIONS]
    kafka = outcomes[0] if len(set(outcomes)) == 1 else f"{outcomes[0]}; 3.9.2 {outcomes[1]}"
    source = " (source)" if rule.evidence is Evidence.SOURCE else ""
    issue = f" {rule.issue}." if rule.issue else ""
    cells = (
        f"`{rule.id}`",
        rule.what,
        f"{kafka}{source}. {rule.effect}{issue}",
        f"`` {rule.log} ``" if rule.log else "",
        rule.remedy.replace("{where}", "the znode").replace("Delete the znode", "Delete it"),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
