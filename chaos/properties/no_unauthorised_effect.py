"""A1: whoever changed something was allowed to, by the ACLs as they stood then.

The client is the one whom its broker authenticated, not whom the controller believed. An API that
is not in NEEDED asks for nothing that ACLs could tell (tokens are their owner's). What a broker
below the bridge release writes itself is judged by the ACLs as that broker knew them; it says as of
when, unless they change faster than it can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from chaos.history import NONE, History, identity_of, row_of
from chaos.properties.breach import violation, zxid
from chaos.properties.reference_authorizer import AclHistory, Asked
from chaos.verdicts import Finding, Property

Need = tuple[str, str, str]  # operation, resource type, name
NO_OFFICE: Final = 0  # in place of an epoch, where a broker decided itself
CLUSTER: Final = ("Cluster", "kafka-cluster")


def _on_topic(operation: str) -> Callable[[str], Sequence[Need]]:
    return lambda element: () if element.startswith("id:") else ((operation, "Topic", element),)


def _on_cluster(operation: str) -> Callable[[str], Sequence[Need]]:
    return lambda _element: ((operation, *CLUSTER),)


def _to_create(element: str) -> Sequence[Need]:
    return ("Create", *CLUSTER), ("Create", "Topic", element)


def _to_alter_configs(element: str) -> Sequence[Need]:
    resource_type, _, name = element.partition(":")
    if resource_type == "2":
        return (("AlterConfigs", "Topic", name),)
    return (("AlterConfigs", *CLUSTER),)


# API key to what is needed for an element: one of these suffices.
NEEDED: Final[Mapping[int, Callable[[str], Sequence[Need]]]] = {
    19: _to_create,  # CreateTopics
    20: _on_topic("Delete"),  # DeleteTopics
    30: _on_cluster("Alter"),  # CreateAcls
    31: _on_cluster("Alter"),  # DeleteAcls
    33: _to_alter_configs,  # AlterConfigs
    37: _on_topic("Alter"),  # CreatePartitions
    43: _on_cluster("Alter"),  # ElectLeaders
    44: _to_alter_configs,  # IncrementalAlterConfigs
    45: _on_cluster("Alter"),  # AlterPartitionReassignments
    49: _on_cluster("AlterConfigs"),  # AlterClientQuotas
    51: _on_cluster("Alter"),  # AlterUserScramCredentials
    57: _on_cluster("Alter"),  # UpdateFeatures
}


def check(history: History) -> Finding:
    """Judge every committed element of a request whose client is known."""
    if history.run.super_users is None:
        return Finding(0, does_not_apply="there is no authorizer")
    acls = AclHistory(history)
    images = {
        (tuple(e["identity"]), e["epoch"]): e["image_zxid"]
        for e in history.of_kind["execution_started"]
    }
    epochs = {term.session: term.epoch for term in history.terms}
    judged = 0
    violations = []
    for commit, outcome in history.outcomes:
        received = history.received.get(outcome.request_id)
        if received is None or outcome.error != NONE:
            continue
        needed = NEEDED.get(received["api_key"])
        needs = needed(outcome.element) if needed is not None else ()
        image = images.get((identity_of(outcome), epochs.get(commit.session, NO_OFFICE)))
        if not needs or image is None or image < 0:
            continue
        judged += 1
        asked = [Asked(received["principal"], received["client_host"], *need) for need in needs]
        if any(acls.allows(each, image) for each in asked):
            continue
        sentence = (
            f"{outcome.request_id}: {received['principal']} changed {outcome.element} at zxid "
            f"{commit.zxid} without {needs[0][0]} on {needs[0][1]} {needs[0][2]}"
        )
        key = f"{outcome.request_id}/{outcome.element}"
        violations.append(violation("A1", key, [row_of(received), zxid(commit.zxid)], sentence))
    return Finding(judged, tuple(violations))


PROPERTY: Final = Property("A1", check)
