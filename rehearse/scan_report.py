"""What a scan found, for people, for programs, and for a build server."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from xml.etree import ElementTree

from bridgehead.schema_version import SCHEMA_VERSION
from cluster_model.znodes.values import shortened
from judge.terminal import printable
from rehearse.checks import RULES, scan
from rehearse.cluster import Cluster
from rehearse.findings import KAFKA_VERSIONS, Finding, Outcome, Rule, Severity
from rehearse.znodes import Hidden

_WIDTH: Final = 80
_PLACES_SHOWN_MAX: Final = 5
_PLACES_IN_XML_MAX: Final = 100
_FAILING: Final = (Severity.BLOCKS, Severity.LOSES)
_KAFKA: Final[Mapping[Outcome, str]] = {
    Outcome.KEPT: "keeps it",
    Outcome.CHANGED: "changes it",
    Outcome.LOST: "loses it",
    Outcome.DELETED: "deletes it",
    Outcome.WAITS: "waits for ever",
    Outcome.STUCK: "is stuck",
    Outcome.DIES: "ends",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The findings in a source, for one version of Kafka; `not_checked` has sentences."""

    source: str
    kafka: str
    summary: str
    zxid: int | None
    findings: Sequence[Finding]
    not_checked: Sequence[str]

    @classmethod
    def of(cls, source: str, cluster: Cluster, kafka: str) -> Report:
        """Scan a cluster."""
        findings = sorted(
            scan(cluster), key=lambda finding: list(Severity).index(finding.rule.severity_in(kafka))
        )
        partitions = sum(len(topic.partitions) for topic in cluster.topics)
        numbers = (len(cluster.topics), partitions, len(cluster.registered))
        summary = ", ".join(
            f"{number:,} {noun}{'' if number == 1 else 's'}"
            for number, noun in zip(
                numbers, ("topic", "partition", "registered broker"), strict=True
            )
        )
        zxid = cluster.tree.zxid
        return cls(source, kafka, summary, zxid, findings, tuple(_not_checked(cluster)))

    @property
    def counts(self) -> Counter[Severity]:
        """How many findings there are of each severity."""
        return Counter(finding.rule.severity_in(self.kafka) for finding in self.findings)

    @property
    def fails(self) -> bool:
        """Whether something blocks the migration or is lost in it."""
        return any(self.counts[severity] for severity in _FAILING)

    def document(self) -> dict[str, Any]:
        """Return all findings as JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "source": self.source,
            "zxid": self.zxid,
            "kafka": self.kafka,
            "counts": {severity.name.lower(): self.counts[severity] for severity in Severity},
            "findings": [self._row(finding) for finding in self.findings],
            "not_checked": list(self.not_checked),
        }

    def _row(self, finding: Finding) -> dict[str, Any]:
        rule = finding.rule
        return {
            "rule": rule.id,
            "severity": rule.severity_in(self.kafka).name.lower(),
            "outcomes": {kafka: rule.outcome_in(kafka).name.lower() for kafka in KAFKA_VERSIONS},
            "what": rule.what,
            "where": finding.place.where,
            "detail": finding.place.detail,
            "effect": rule.effect,
            "log": rule.log,
            "issue": rule.issue,
            "known_from": rule.evidence.value,
            "remedy": finding.remedy,
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines for people, at most 80 characters wide unless a path is longer."""
        zxid = "" if self.zxid is None else f", zxid 0x{self.zxid:x}"
        yield from _wrapped(f"{self.source}: {self.summary}{zxid}. Kafka {self.kafka}.")
        by_severity = groupby(self.findings, key=lambda f: f.rule.severity_in(self.kafka))
        for severity, findings in by_severity:
            yield ""
            yield severity.value.capitalize()
            for rule, same in groupby(findings, key=lambda finding: finding.rule):
                yield from self._rule_lines(rule, list(same))
        if self.not_checked:
            yield ""
            yield "Not checked"
            for sentence in self.not_checked:
                yield from _wrapped(sentence, "  - ", "    ")
        yield ""
        yield from _wrapped(self._verdict())

    def _rule_lines(self, rule: Rule, findings: Sequence[Finding]) -> Iterator[str]:
        issue = f" ({rule.issue})" if rule.issue else ""
        yield from _wrapped(f"{rule.what} [{rule.id}]{issue}", "  - ", "    ")
        for finding in findings[:_PLACES_SHOWN_MAX]:
            detail = f": {finding.place.detail}" if finding.place.detail else ""
            yield from _wrapped(f"{shortened(finding.place.where)}{detail}", "    ", "      ")
        if len(findings) > _PLACES_SHOWN_MAX:
            yield f"    and {len(findings) - _PLACES_SHOWN_MAX:,} more; --json lists all"
        yield from _wrapped(f"Kafka {_did(rule)}. {rule.effect}", "    ", "    ")
        if rule.log:
            yield from _wrapped(f"Its log says: {rule.log}", "    ", "      ")
        remedy = findings[0].remedy if len(findings) == 1 else rule.remedy
        yield from _wrapped(
            f"Remedy: {remedy.replace('{where}', 'each of them')}", "    ", "      "
        )

    def _verdict(self) -> str:
        if not self.findings:
            return "No findings."
        parts = []
        for severity in Severity:
            count = self.counts[severity]
            verb, _, rest = severity.value.partition(" ")
            if count:
                parts.append(f"{count:,} {verb if count == 1 else verb.removesuffix('s')} {rest}")
        return f"Findings: {', '.join(parts)}."

    def junit(self) -> ElementTree.Element:
        """Return a test suite with one case for each rule."""
        places = {
            rule_id: list(same)
            for rule_id, same in groupby(
                sorted(self.findings, key=lambda finding: finding.rule.id),
                key=lambda finding: finding.rule.id,
            )
        }
        failing = [r for r in RULES if r.id in places and r.severity_in(self.kafka) in _FAILING]
        suite = ElementTree.Element(
            "testsuite",
            name="bridgehead rehearse scan",
            tests=str(len(RULES)),
            failures=str(len(failing)),
            errors="0",
        )
        for rule in RULES:
            case = ElementTree.SubElement(
                suite, "testcase", classname="rehearse.scan", name=rule.id
            )
            if rule.id not in places:
                continue
            text = "\n".join(_xml_lines(rule, places[rule.id]))
            if rule in failing:
                problem = ElementTree.SubElement(case, "failure", message=f"{rule.what}")
                problem.text = text
            else:
                ElementTree.SubElement(case, "system-out").text = text
        return suite


def _did(rule: Rule) -> str:
    """Return what Kafka does, for both versions if they differ."""
    outcomes = {kafka: rule.outcome_in(kafka) for kafka in KAFKA_VERSIONS}
    if len(set(outcomes.values())) == 1:
        return _KAFKA[rule.outcome]
    return ", ".join(f"{kafka} {_KAFKA[outcome]}" for kafka, outcome in outcomes.items())


def _remedy_for_all(rule: Rule) -> str:
    return rule.remedy.replace("{where}", "each of them")


def _xml_lines(rule: Rule, findings: Sequence[Finding]) -> Iterator[str]:
    yield rule.effect
    for finding in findings[:_PLACES_IN_XML_MAX]:
        yield printable(f"{finding.place.where} {finding.place.detail}".strip())
    if len(findings) > _PLACES_IN_XML_MAX:
        yield f"and {len(findings) - _PLACES_IN_XML_MAX:,} more"
    yield _remedy_for_all(rule)


def _wrapped(text: str, first: str = "", other: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        printable(text),
        width=_WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _not_checked(cluster: Cluster) -> Iterator[str]:
    tree = cluster.tree
    if not tree.is_one_state:
        yield "ZooKeeper was written to while it was read: a finding may be of no moment."
    left_out = [path for path, znode in tree.znodes.items() if znode.hidden is Hidden.LEFT_OUT]
    if left_out:
        yield (
            f"The secrets of {len(left_out):,} znodes are not in the dump, such as "
            f"{shortened(left_out[0])}: dump them with --seal, and give the --key."
        )
    if not cluster.registered:
        yield "No broker is registered, so that replicas on absent brokers cannot be told."
    if all(znode.acls is None for znode in tree.znodes.values()):
        yield "The source does not tell the ACLs of znodes."
    if not list(cluster.broker_files()):
        yield "Brokers' properties: give each server.properties with --server-properties."
    if not list(cluster.controller_files()):
        yield "Controllers' properties: give each file with --server-properties."
    yield "Logs on the brokers' disks, other programs' znodes, custom authorizers, networks."
