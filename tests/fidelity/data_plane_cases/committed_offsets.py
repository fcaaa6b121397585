"""OffsetCommit, OffsetFetch and OffsetDelete; ListGroups, DescribeGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.codec import encode_json
from tests.fidelity.data_plane_cases.members import SUBSCRIPTION, join, joined, leave, stable, sync
from tests.fidelity.data_plane_cases.steps import (
    FOLLOWER,
    LEADER,
    Case,
    Step,
    request,
    topic,
    topics,
    unsupported,
    versions,
)

K = ApiKey
_TOPIC_PARTITIONS = ["topics", "topics.*.partitions"]
_GROUP_TOPICS = ["groups", "groups.*.topics", "groups.*.topics.*.partitions"]


def committed_offset_cases() -> Iterator[Case]:
    """Yield the cases. The first one creates the topics."""
    yield {
        "case": "committed offsets: topics",
        "steps": [topics(topic("committed", (1,), (1,)), topic("committed-too"))],
    }
    yield {"case": "offset commit to ZooKeeper", "steps": [_to_zookeeper()]}
    for version in versions(K.OFFSET_COMMIT, 1):
        yield {"case": f"offset commit v{version}", "steps": list(_commits(version))}
    for version in versions(K.OFFSET_FETCH):
        yield {"case": f"offset fetch v{version}", "steps": list(_fetches(version))}
    yield {"case": "offset delete", "steps": list(_offset_deletes())}
    for version in versions(K.LIST_GROUPS):
        yield {"case": f"list groups v{version}", "steps": list(_lists(version))}
    for version in versions(K.DESCRIBE_GROUPS):
        yield {"case": f"describe groups v{version}", "steps": list(_descriptions(version))}
    for version in versions(K.DELETE_GROUPS):
        yield {"case": f"delete groups v{version}", "steps": list(_deletes(version))}


def commit(
    version: int, group: str, offset: int = 5, *, name: str = "committed", partition: int = 0,
    member: str = "", generation: int = -1, metadata: str | None = "note",
    step: dict[str, Any] | None = None, **fields: Any,
) -> Step:  # fmt: skip
    """Return an OffsetCommit request for one partition."""
    wanted = {
        "partitionIndex": partition,
        "committedOffset": offset,
        "committedLeaderEpoch": 0,
        "committedMetadata": metadata,
    }
    defaults = {
        "groupId": group,
        "generationIdOrMemberEpoch": generation,
        "memberId": member,
        "topics": [{"name": name, "partitions": [wanted]}],
    }
    return request(K.OFFSET_COMMIT, version, {**defaults, **fields}, **(step or {}))


def fetched(
    version: int, group: str, wanted: Sequence[tuple[str, Sequence[int]]] | None = (),
    *, step: dict[str, Any] | None = None, **fields: Any,
) -> Step:  # fmt: skip
    """Return an OffsetFetch request; null topics mean all."""
    named = None
    if wanted is not None:
        named = [{"name": name, "partitionIndexes": list(numbers)} for name, numbers in wanted]
    asked: dict[str, Any] = {"groupId": group, "topics": named}
    if version >= 8:
        asked = {"groups": [{**asked, **fields}]}
    return request(
        K.OFFSET_FETCH, version, asked, unordered=_TOPIC_PARTITIONS + _GROUP_TOPICS, **(step or {})
    )


def _commits(version: int) -> Iterator[Step]:
    group = f"commits-{version}"
    both: list[tuple[str, list[int]]] = [("committed", [0, 1, 7])]
    yield commit(version, group)
    yield fetched(7, group, both)
    yield commit(version, "")
    yield commit(version, group, name="missing")
    yield commit(version, group, name="")
    yield commit(version, group, partition=9)
    yield commit(version, group, partition=-1)
    yield commit(version, group, -1, partition=1)
    yield commit(version, group, 2**63 - 1, partition=1, metadata=None)
    yield commit(version, group, metadata="x" * 4096)
    yield commit(version, group, metadata="x" * 4097)
    yield commit(version, group, topics=[])
    yield commit(version, group, step={"to": FOLLOWER})
    yield commit(version, group, generation=3)
    yield commit(version, group, member="unknown")
    yield commit(version, group, member="unknown", generation=0)
    if version == 1:
        wanted = {"partitionIndex": 0, "committedOffset": 7, "commitTimestamp": 1000}
        for time_ms in (1000, -1, -5, 0):
            named = [{"name": "committed", "partitions": [{**wanted, "commitTimestamp": time_ms}]}]
            yield commit(version, group, topics=named)
    if 2 <= version <= 4:
        for time_ms in (1000, 0, -5):
            yield commit(version, group, 8, retentionTimeMs=time_ms)
    yield fetched(7, group, both)
    yield from joined(3, f"{group}-joined", "m")
    for generation in (1, 0):
        yield commit(version, f"{group}-joined", member="$m", generation=generation)
    yield sync(2, f"{group}-joined", "$m", 1, assigned=["$m"])
    for member, generation in (("$m", 1), ("$m", 0), ("$m", -1), ("x", 1), ("", 1), ("", -1)):
        yield commit(version, f"{group}-joined", 9, member=member, generation=generation)
    if version >= 7:
        yield commit(version, f"{group}-joined", member="$m", generation=1, groupInstanceId="one")
    yield fetched(7, f"{group}-joined", None)
    yield unsupported(K.OFFSET_COMMIT, 10 + version)


def _to_zookeeper() -> Step:
    """Return an OffsetCommit request of version 0, for which Kafka writes to ZooKeeper."""
    body = commit(0, "in-zookeeper")["body"]
    return {"to": LEADER, "raw": encode_json(K.OFFSET_COMMIT, 0, body).hex(), "fresh": True}


def _fetches(version: int) -> Iterator[Step]:
    group = f"fetches-{version}"
    yield fetched(version, group, [("committed", [0])])
    yield commit(6, group)
    yield commit(6, group, 6, partition=1, metadata="")
    asked: tuple[list[tuple[str, list[int]]], ...] = (
        [("committed", [0, 1])],
        [("committed", [0, 9]), ("committed-too", [0])],
        [("missing", [0])],
        [("", [0])],
        [("committed", [-1])],
        [("committed", [])],
    )
    for wanted in asked:
        yield fetched(version, group, wanted)
    if version != 0:
        yield fetched(version, group, ())
    if version >= 2:
        yield fetched(version, group, None)
        yield fetched(version, "no-group", None)
    yield fetched(version, "", [("committed", [0])])
    yield fetched(version, group, [("committed", [0])], step={"to": FOLLOWER})
    if version == 7:
        stable_only = {"groupId": group, "topics": None, "requireStable": True}
        yield request(K.OFFSET_FETCH, 7, stable_only, unordered=_TOPIC_PARTITIONS)
    if version >= 8:
        several = [
            {"groupId": group_id, "topics": None}
            for group_id in (group, "no-group", "", "fetches-0")
        ]
        yield request(K.OFFSET_FETCH, version, {"groups": several, "requireStable": True},
                      unordered=_GROUP_TOPICS)  # fmt: skip
    if version >= 9:
        yield fetched(version, group, None, memberId="unknown", memberEpoch=3)
        yield fetched(version, group, None, memberId="", memberEpoch=-1)
    yield unsupported(K.OFFSET_FETCH, 10 + version)


def _offset_deletes() -> Iterator[Step]:
    def delete(group: str, name: str, *numbers: int, **step: Any) -> Step:
        partitions = [{"partitionIndex": number} for number in numbers]
        fields = {"groupId": group, "topics": [{"name": name, "partitions": partitions}]}
        return request(K.OFFSET_DELETE, 0, fields, unordered=_TOPIC_PARTITIONS, **step)

    yield commit(6, "od")
    yield commit(6, "od", partition=1)
    yield delete("od-missing", "committed", 0)
    yield delete("", "committed", 0)
    yield delete("od", "missing", 0)
    yield delete("od", "committed", 9, 0, -1)
    yield delete("od", "committed", 0, to=FOLLOWER)
    yield delete("od", "committed-too", 0)
    yield request(K.OFFSET_DELETE, 0, {"groupId": "od"})
    yield fetched(7, "od", None)
    yield from joined(3, "od-joined", "m")
    yield sync(2, "od-joined", "$m", 1, assigned=["$m"])
    yield commit(6, "od-joined", member="$m", generation=1)
    yield commit(6, "od-joined", member="$m", generation=1, name="committed-too")
    yield delete("od-joined", "committed", 0)
    yield delete("od-joined", "committed-too", 0)
    yield fetched(7, "od-joined", None)
    yield from joined(3, "od-connect", "m", protocolType="connect")
    yield delete("od-connect", "committed", 0)
    yield unsupported(K.OFFSET_DELETE, 1)


def _lists(version: int) -> Iterator[Step]:
    def ask(states: Sequence[str] = (), types: Sequence[str] = (), **step: Any) -> Step:
        fields = {"statesFilter": states, "typesFilter": types}
        return request(K.LIST_GROUPS, version, fields, unordered=["groups"], **step)

    group = f"lists-{version}"
    yield from stable(group)
    yield commit(6, f"{group}-offsets")
    yield from joined(3, f"{group}-joining", "n")
    yield ask()
    yield ask(to=FOLLOWER)
    if version >= 4:
        for states in (["Stable"], ["stable", "EMPTY"], ["Dead"], ["x"], ["CompletingRebalance"],
                       ["PreparingRebalance"], [""]):  # fmt: skip
            yield ask(states)
    if version >= 5:
        for types in (["classic"], ["Consumer"], ["CLASSIC", "consumer"], ["x"], [""]):
            yield ask(types=types)
        yield ask(["Stable"], ["classic"])
    yield unsupported(K.LIST_GROUPS, 6 + version)


def _descriptions(version: int) -> Iterator[Step]:
    def ask(*groups: str, **step: Any) -> Step:
        fields = {"groups": groups, "includeAuthorizedOperations": step.pop("rights", False)}
        return request(
            K.DESCRIBE_GROUPS, version, fields, unordered=["groups", "groups.*.members"], **step
        )

    group = f"described-{version}"
    yield ask("no-group")
    yield ask("")
    yield ask()
    yield commit(6, f"{group}-offsets")
    yield from joined(3, group, "m", protocols=(("range", SUBSCRIPTION), ("sticky", SUBSCRIPTION)))
    yield ask(group)
    yield sync(2, group, "$m", 1, assigned=["$m"])
    yield ask(group)
    yield ask(group, "no-group", f"{group}-offsets", group)
    yield ask(group, to=FOLLOWER)
    if version >= 3:
        yield ask(group, "no-group", rights=True)
    yield leave(2, group, "$m")
    yield ask(group)
    yield unsupported(K.DESCRIBE_GROUPS, 6 + version)


def _deletes(version: int) -> Iterator[Step]:
    def delete(*groups: str, **step: Any) -> Step:
        fields = {"groupsNames": groups}
        return request(K.DELETE_GROUPS, version, fields, unordered=["results"], **step)

    group = f"removed-{version}"
    yield from stable(group)
    yield commit(6, f"{group}-offsets")
    yield delete(group)
    yield delete("no-group")
    yield delete("")
    yield delete()
    yield delete(group, to=FOLLOWER)
    yield delete(group, "no-group", f"{group}-offsets", group)
    yield fetched(7, f"{group}-offsets", None)
    yield leave(2, group, "$m")
    yield delete(group)
    yield delete(group)
    yield join(3, group, "$m")
    yield unsupported(K.DELETE_GROUPS, 3 + version)
