"""The outcomes of requests, each kept until the broker has finished the request (docs/adr/0003).

The multi with the effects of a request also creates a znode with the outcome of each element, so
the next controller recognizes a resend. Pure: the store executes the operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.znodes.layout import (
    FloorZnode,
    OutcomeZnode,
    decode_incarnation,
    decode_uuid,
    encode_uuid,
)
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from cluster_model.znodes.values import (
    decoding,
    int32,
    int64,
    json_object,
    list_of,
    object_of,
    string,
)
from controller.apis.base import Outcome
from envelope.messages import RequestIdentity

# Below the store's limit of operations, with room for the floors.
PRUNED_PER_MULTI_MAX: Final = 400


class RequestOutcomes(NamedTuple):
    """The committed elements of one request within one multi."""

    identity: RequestIdentity
    request_id: str
    elements: Mapping[str, Outcome]


def encode_outcomes(epoch: int, outcomes: Iterable[RequestOutcomes]) -> bytes:
    """Return the content of an outcome znode. Contains no secrets and no responses."""
    return orjson.dumps(
        {
            "epoch": epoch,
            "outcomes": [
                {
                    "id": list(identity),
                    "request": request_id,
                    "elements": [
                        [
                            element,
                            int(outcome.error),
                            outcome.message,
                            None if outcome.topic_id is None else encode_uuid(outcome.topic_id),
                            *([outcome.numbers] if outcome.numbers else ()),
                        ]
                        for element, outcome in elements.items()
                    ],
                }
                for identity, request_id, elements in outcomes
            ],
        }
    )


def decode_outcomes(path: str, data: bytes | None) -> list[RequestOutcomes]:
    """Decode an outcome znode. Raises ZnodeContentError."""
    with decoding(path):
        return [
            RequestOutcomes(
                _identity(*entry["id"]),
                string(entry["request"]),
                {
                    string(element): Outcome(
                        ErrorCode(int32(code, -1)),
                        None if message is None else string(message),
                        None if uuid is None else decode_uuid(uuid),
                        *(tuple(map(int64, number)) for number in numbers),
                    )
                    for element, code, message, uuid, *numbers in entry["elements"]
                },
            )
            for entry in map(object_of, list_of(json_object(data, path)["outcomes"]))
        ]


def _identity(broker_id: Any, incarnation: Any, sequence: Any) -> RequestIdentity:
    return RequestIdentity(int32(broker_id), decode_incarnation(incarnation), int64(sequence))


Incarnation = tuple[int, str]  # broker id, incarnation


@dataclass(frozen=True, slots=True)
class Pruning:
    """A multi that prunes the outcomes of these commits."""

    commits: Sequence[int]
    gone: frozenset[Incarnation]  # those that will not resend
    floors: Mapping[Incarnation, int]  # which are stored afterwards
    deleted_floors: frozenset[Incarnation]
    operations: Sequence[Operation]


@dataclass(slots=True)
class OutcomeIndex:
    """All outcomes in ZooKeeper, and each incarnation's floor; outcomes below it are pruned."""

    committed: dict[RequestIdentity, dict[str, Outcome]] = field(default_factory=dict)
    # By commit number: the requests whose outcomes are in the znode with this number.
    commits: dict[int, tuple[RequestIdentity, ...]] = field(default_factory=dict)
    floors: dict[Incarnation, int] = field(default_factory=dict)
    stored_floors: dict[Incarnation, int] = field(default_factory=dict)

    def add(self, commit: int, outcomes: Sequence[RequestOutcomes]) -> None:
        """Add the outcomes of one multi."""
        for identity, _, elements in outcomes:
            self.committed.setdefault(identity, {}).update(elements)
        self.commits[commit] = tuple(entry.identity for entry in outcomes)

    def lookup(self, identity: RequestIdentity) -> Mapping[str, Outcome]:
        """Return the outcomes of the committed elements; none for a new request."""
        return self.committed.get(identity, {})

    def raise_floor(self, incarnation: Incarnation, floor: int) -> None:
        """Record that the broker has finished all its requests with a sequence below `floor`."""
        if floor > self.floors.get(incarnation, 0):
            self.floors[incarnation] = floor

    def is_below_floor(self, identity: RequestIdentity) -> bool:
        """True for a resend of a request that its broker has finished."""
        return identity.sequence < self.floors.get(identity[:2], 0)

    def prunable(self, gone: frozenset[Incarnation]) -> list[int]:
        """Return the commits whose requests will not be resent, oldest first."""
        return [
            commit
            for commit, identities in self.commits.items()
            if all(i[:2] in gone or self.is_below_floor(i) for i in identities)
        ][:PRUNED_PER_MULTI_MAX]

    def plan_pruning(self, commits: Sequence[int], gone: frozenset[Incarnation]) -> Pruning:
        """Plan the multi that prunes `commits` and stores the floors."""
        operations: list[Operation] = [Delete(OutcomeZnode.path(commit)) for commit in commits]
        touched = {identity[:2] for commit in commits for identity in self.commits[commit]}
        floors = {i: self.floors[i] for i in sorted(touched - gone)}
        for incarnation, floor in floors.items():
            path, content = FloorZnode.path(*incarnation), b"%d" % floor
            if incarnation not in self.stored_floors:
                operations.append(Create(path, content))
            elif self.stored_floors[incarnation] != floor:
                operations.append(SetData(path, content))
        # The floor of a vanished incarnation is deleted with the last of its outcomes.
        kept = {i[:2] for c, ids in self.commits.items() if c not in set(commits) for i in ids}
        deleted = [i for i in sorted(gone - kept) if i in self.stored_floors]
        operations += [Delete(FloorZnode.path(*incarnation)) for incarnation in deleted]
        return Pruning(tuple(commits), gone, floors, frozenset(deleted), operations)

    def pruned(self, pruning: Pruning) -> None:
        """Remove what a committed multi has pruned. Brokers may have raised floors meanwhile."""
        for commit in pruning.commits:
            for identity in self.commits.pop(commit):
                self.committed.pop(identity, None)
        self.stored_floors |= pruning.floors
        for incarnation in pruning.deleted_floors:
            del self.stored_floors[incarnation]
        kept = {identity[:2] for identities in self.commits.values() for identity in identities}
        for incarnation in pruning.gone - kept:
            self.floors.pop(incarnation, None)

    def known_incarnations(self) -> set[Incarnation]:
        """Return every incarnation that has outcomes or a floor."""
        incarnations = {
            identity[:2] for identities in self.commits.values() for identity in identities
        }
        return incarnations | set(self.stored_floors)
