"""The rules of a scan. To add one, add it to the tuple `RULES` of the module with its theme."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from rehearse.checks import acls, clients, configs, files, state, topics
from rehearse.cluster import Cluster
from rehearse.findings import Finding, Rule

THEMES: Final[Mapping[str, tuple[Rule, ...]]] = MappingProxyType(
    {
        "topics and partitions": topics.RULES,
        "configs": configs.RULES,
        "quotas and SCRAM": clients.RULES,
        "ACLs": acls.RULES,
        "the cluster's own znodes": state.RULES,
        "server.properties": files.RULES,
    }
)
RULES: Final[tuple[Rule, ...]] = tuple(chain.from_iterable(THEMES.values()))


def scan(cluster: Cluster) -> list[Finding]:
    """Return all findings, in the order of the rules. Never raises for any content."""
    return [Finding(rule, place) for rule in RULES for place in rule.find(cluster)]
