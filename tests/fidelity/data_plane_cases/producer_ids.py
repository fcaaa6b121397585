"""InitProducerId without transactional ids, and FindCoordinator."""

from __future__ import annotations

from collections.abc import Iterator

from bridgehead.kafka_wire.api_key import ApiKey
from tests.fidelity.data_plane_cases.steps import Case, Step, request, unsupported, versions

K = ApiKey


def producer_id_cases() -> Iterator[Case]:
    """Yield the cases."""
    for version in versions(K.INIT_PRODUCER_ID):
        yield {"case": f"producer ids v{version}", "steps": list(_ids(version))}
    for version in versions(K.FIND_COORDINATOR):
        yield {"case": f"coordinators v{version}", "steps": list(_coordinators(version))}


def _ids(version: int) -> Iterator[Step]:
    def ask(
        producer: int | str, epoch: int, timeout_ms: int = 1000, transactional: str | None = None
    ) -> Step:
        fields = {
            "transactionalId": transactional,
            "transactionTimeoutMs": timeout_ms,
            "producerId": producer,
            "producerEpoch": epoch,
        }
        return request(K.INIT_PRODUCER_ID, version, fields)

    yield {**ask(-1, -1), "capture": {"first": "producerId"}}
    yield {**ask(-1, -1), "capture": {"second": "producerId"}}
    for producer, epoch in ((-1, 0), (5, -1), ("$first", 0), ("$first", 7), (-5, -5)):
        yield {**ask(producer, epoch), "capture": {"later": "producerId"}}
    for timeout_ms in (0, -1, 2**31 - 1):
        yield {**ask(-1, -1, timeout_ms), "capture": {"later": "producerId"}}
    yield ask(-1, -1, transactional="")
    yield unsupported(K.INIT_PRODUCER_ID, 6 + version)


def _coordinators(version: int) -> Iterator[Step]:
    def ask(*keys: str, kind: int = 0) -> Step:
        fields = {"keyType": kind} if version >= 1 else {}
        named = {"coordinatorKeys": keys} if version >= 4 else {"key": keys[0]}
        return request(K.FIND_COORDINATOR, version, {**fields, **named})

    for key in ("a", "some-group", "", "ü", "x" * 300):
        yield ask(key)
    if version >= 1:
        yield ask("g", kind=1)
        yield ask("g", kind=2)
        yield ask("g", kind=-1)
    if version >= 4:
        yield ask("a", "b", "a")
        yield ask()
    yield unsupported(K.FIND_COORDINATOR, 7 + version)
