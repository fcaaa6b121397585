"""A seeded bug as a value: what it changes in a node, and what finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, Literal

from controller.controller import Controller
from controller.services import Services, Settings
from node.collaborators import Collaborators
from node.config import NodeConfig

FOUND_BY_RUNS: Final = "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug"
"""The test that runs scenarios with seeded bugs."""

Part = Literal[
    "controller",
    "store",
    "learned_acls",
    "authenticator",
    "forwarding",
    "partitions",
    "groups",
    "server",
    "watcher",
    "lifecycle",
    "kraft_link",
    "kraft_requests",
]
"""The collaborators that are classes."""


@dataclass(frozen=True, slots=True)
class Composition:
    """What a node is built from."""

    config: NodeConfig
    collaborators: Collaborators


Change = Callable[[Composition], Composition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a scenario that finds a bug."""

    scenario: str
    found_by: tuple[str, ...]
    """See chaos.scenario.Catch."""
    together_with: tuple[str, ...] = ()
    """Other bugs that the nodes have in this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One error of a node."""

    name: str
    does: str
    """One sentence."""
    apply: Change
    """Seeds the bug into the composition of a node."""
    found_by: str
    """The properties that find the bug, or what else the test compares."""
    test: str = FOUND_BY_RUNS
    """The bug's test, as file::function below tests/."""
    run: Run | None = None
    """Needed if no scenario has the bug in `catches`, and `test` is FOUND_BY_RUNS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaBug(Bug):
    """A bug that Kafka had, or a similar one; docs/kafka-bugs.md lists these bugs."""

    issue: str
    happened: str
    """What happened in Kafka, in one or two sentences."""
    run: Run


def part(name: Part, faulty: type) -> Change:
    """Return a change that derives a collaborator from `faulty` and from its present class.

    `faulty` is a subclass of the production class. So its overrides also apply if the simulation or
    another bug has replaced that class.
    """

    def apply(composition: Composition) -> Composition:
        present: Any = getattr(composition.collaborators, name)
        if issubclass(present, faulty):
            return composition
        derived = type(faulty.__name__, (faulty, present), {})
        collaborators = replace(composition.collaborators, **{name: derived})
        return replace(composition, collaborators=collaborators)

    return apply


def settings(change: Callable[[Settings], Settings]) -> Change:
    """Return a change of the controller's settings."""

    class OtherSettings(Controller):
        def __init__(self, settings: Settings, services: Services) -> None:
            super().__init__(change(settings), services)

    return part("controller", OtherSettings)


def services(change: Callable[[Services], Services]) -> Change:
    """Return a change of the controller's own collaborators."""

    class OtherServices(Controller):
        def __init__(self, settings: Settings, services: Services) -> None:
            super().__init__(settings, change(services))

    return part("controller", OtherServices)


def config(change: Callable[[NodeConfig], NodeConfig]) -> Change:
    """Return a change of the node's configuration."""
    return lambda composition: replace(composition, config=change(composition.config))


def together(*changes: Change) -> Change:
    """Return one change that makes all of these, in this order."""
    return lambda composition: reduce(lambda done, change: change(done), changes, composition)
