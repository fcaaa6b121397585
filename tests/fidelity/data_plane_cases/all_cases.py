"""Every case, in the order of the recording. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.fidelity.data_plane_cases.committed_offsets import committed_offset_cases
from tests.fidelity.data_plane_cases.fetch import fetch_cases
from tests.fidelity.data_plane_cases.members import member_cases
from tests.fidelity.data_plane_cases.offsets import offset_cases
from tests.fidelity.data_plane_cases.produce import produce_cases
from tests.fidelity.data_plane_cases.producer_ids import producer_id_cases
from tests.fidelity.data_plane_cases.rights import rights_cases
from tests.fidelity.data_plane_cases.steps import Case, Step, topic, topics

_INTERNAL_PARTITIONS: Final = 5  # as in data-plane.properties; the number determines coordinators
_CASES: Final = (
    produce_cases,
    fetch_cases,
    offset_cases,
    producer_id_cases,
    committed_offset_cases,
    member_cases,
)


def open_cases() -> Iterator[Case]:
    """Yield the cases for brokers without an authorizer."""
    yield {"case": "internal topics", "steps": [_internal_topics()]}
    for cases in _CASES:
        yield from cases()


def secured_cases() -> Iterator[Case]:
    """Yield the cases for brokers with an authorizer, whose steps have users."""
    yield {"case": "internal topics", "steps": [{**_internal_topics(), "user": "admin"}]}
    yield from rights_cases()


def _internal_topics() -> Step:
    """Create the internal topics with replicas on broker 1 only.

    The recorded Kafka and our cluster then have the same coordinators.
    """
    replicas = [(1,)] * _INTERNAL_PARTITIONS
    names = ("__consumer_offsets", "__transaction_state")
    return topics(*(topic(name, *replicas, cleanup_policy="compact") for name in names))
