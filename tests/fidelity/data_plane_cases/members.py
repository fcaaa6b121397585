"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of single, paired, static and unknown members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from tests.fidelity.data_plane_cases.steps import (
    FOLLOWER,
    Case,
    Step,
    received,
    request,
    unsupported,
    versions,
)

K = ApiKey
# Subscriptions to the topics `committed` and `other`, as consumers encode them. Kafka never answers
# a JoinGroup request whose subscription is malformed.
SUBSCRIPTION: Final = b"\0\0\0\0\0\1\0\x09committed\xff\xff\xff\xff"
_OTHER: Final = b"\0\0\0\0\0\1\0\x05other\xff\xff\xff\xff"
RANGE: Final = (("range", SUBSCRIPTION),)
_SESSION_MS: Final = 30_000
_REBALANCE_IN_PROGRESS: Final = 27


def join(
    version: int, group: str, member: str = "", *, protocols: Sequence[tuple[str, bytes]] = RANGE,
    step: dict[str, Any] | None = None, **fields: Any,
) -> Step:  # fmt: skip
    """Return a JoinGroup request."""
    defaults = {
        "groupId": group,
        "sessionTimeoutMs": _SESSION_MS,
        "rebalanceTimeoutMs": 20_000,
        "memberId": member,
        "protocolType": "consumer",
        "protocols": [{"name": name, "metadata": data} for name, data in protocols],
    }
    return request(
        K.JOIN_GROUP, version, {**defaults, **fields}, unordered=["members"], **(step or {})
    )


def joined(version: int, group: str, name: str, **fields: Any) -> Iterator[Step]:
    """Yield the steps that make a member join; its id becomes `$name`.

    From version 4 on, a dynamic member first gets an id and joins again with it (KIP-394).
    """
    capture = {"capture": {name: "memberId"}}
    yield join(version, group, step=capture, **fields)
    if version >= 4 and "groupInstanceId" not in fields:
        yield join(version, group, f"${name}", step=capture, **fields)


def sync(
    version: int, group: str, member: str, generation: int, *, assigned: Sequence[str] = (),
    step: dict[str, Any] | None = None, **fields: Any,
) -> Step:  # fmt: skip
    """Return a SyncGroup request; each member in `assigned` gets the same bytes."""
    defaults = {
        "groupId": group,
        "generationId": generation,
        "memberId": member,
        "assignments": [{"memberId": name, "assignment": b"partitions"} for name in assigned],
    }
    return request(K.SYNC_GROUP, version, {**defaults, **fields}, **(step or {}))


def heartbeat(version: int, group: str, member: str, generation: int, **fields: Any) -> Step:
    """Return a Heartbeat request."""
    defaults = {"groupId": group, "generationId": generation, "memberId": member}
    return request(K.HEARTBEAT, version, {**defaults, **fields})


def leave(version: int, group: str, *members: str, instance: str | None = None) -> Step:
    """Return a LeaveGroup request of these members; below version 3, of the first one only."""
    identities = [{"memberId": member, "groupInstanceId": instance} for member in members]
    named = {"members": identities} if version >= 3 else {"memberId": members[0]}
    return request(K.LEAVE_GROUP, version, {"groupId": group, **named}, unordered=["members"])


def stable(group: str, name: str = "m", version: int = 3) -> Iterator[Step]:
    """Yield the steps that make a group of generation 1 with one member, `$name`."""
    yield from joined(version, group, name)
    yield sync(2, group, f"${name}", 1, assigned=[f"${name}"])


def member_cases() -> Iterator[Case]:
    """Yield the cases."""
    for version in versions(K.JOIN_GROUP):
        yield {"case": f"join group v{version}", "steps": list(_joins(version))}
        yield {"case": f"pair v{version}", "steps": list(_pair(version))}
    for version in versions(K.JOIN_GROUP, 5):
        yield {"case": f"static members v{version}", "steps": list(_static(version))}
    for version in versions(K.SYNC_GROUP):
        yield {"case": f"sync group v{version}", "steps": list(_syncs(version))}
    for version in versions(K.HEARTBEAT):
        yield {"case": f"heartbeat v{version}", "steps": list(_heartbeats(version))}
    for version in versions(K.LEAVE_GROUP):
        yield {"case": f"leave group v{version}", "steps": list(_leaves(version))}


def _joins(version: int) -> Iterator[Step]:
    group = f"joins-{version}"
    yield join(version, "")
    yield join(version, group, "unknown")
    for timeout_ms in (0, -1, 5999, 1_800_001):
        yield join(version, group, sessionTimeoutMs=timeout_ms)
    yield join(version, group, protocols=())
    yield join(version, group, protocolType="")
    yield join(version, group, step={"to": FOLLOWER})
    yield from joined(version, group, "m")
    yield join(version, group, "$m", protocols=(("roundrobin", SUBSCRIPTION),))
    yield join(version, group, "unknown")
    yield join(version, group, protocolType="connect")
    yield join(version, group, "$m", protocolType="connect")
    yield join(version, group, protocols=(("sticky", SUBSCRIPTION),))
    yield join(version, group, protocols=())
    yield join(version, group, "$m")
    yield sync(2, group, "$m", 2, assigned=["$m"])
    yield join(version, group, "$m", protocols=(("roundrobin", _OTHER), ("range", _OTHER)))
    yield leave(2, group, "$m")
    yield join(version, group, "$m")
    yield join(version, group, protocolType="connect", protocols=(("a", b""), ("b", b"")),
               step={"capture": {"n": "memberId"}})  # fmt: skip
    yield unsupported(K.JOIN_GROUP, 10 + version)


def _pair(version: int) -> Iterator[Step]:
    """A second member joins. The first learns this from a Heartbeat response and joins again."""
    group = f"pair-{version}"
    yield from joined(version, group, "m")
    yield sync(2, group, "$m", 1, assigned=["$m"])
    yield heartbeat(3, group, "$m", 1)
    second = {"client": "second", "capture": {"n": "memberId"}}
    if version >= 4:
        yield join(version, group, step=second)
        yield join(version, group, "$n", step={"client": "second", "later": True})
    else:
        yield join(version, group, step={"client": "second", "later": True})
    yield {**heartbeat(3, group, "$m", 1), "until": _REBALANCE_IN_PROGRESS}
    yield sync(2, group, "$m", 1)
    yield join(version, group, "$m", step={"client": "first", "later": True})
    yield received(K.JOIN_GROUP, version, "second", capture={"n": "memberId"})
    yield received(K.JOIN_GROUP, version, "first", unordered=["members"])
    yield sync(2, group, "$n", 2, step={"client": "second", "later": True})
    yield sync(2, group, "$m", 2, assigned=["$m", "$n"])
    yield received(K.SYNC_GROUP, 2, "second")
    yield heartbeat(3, group, "$n", 2)
    describe = request(K.DESCRIBE_GROUPS, 5, {"groups": [group]}, unordered=["groups.*.members"])
    yield describe
    yield leave(2, group, "$m")
    yield heartbeat(3, group, "$n", 2)
    yield join(version, group, "$n", step={"client": "second"})
    yield sync(2, group, "$n", 3, assigned=["$n"])
    yield describe


def _static(version: int) -> Iterator[Step]:
    group = f"static-{version}"
    one: dict[str, Any] = {"groupInstanceId": "one"}
    yield join(version, f"{group}-empty", groupInstanceId="", step={"capture": {"e": "memberId"}})
    slash = {"capture": {"s": "memberId"}}
    yield join(version, f"{group}-slash", groupInstanceId="bad/name", step=slash)
    yield join(version, group, "unknown", **one)
    yield from joined(version, group, "m", **one)
    yield sync(5, group, "$m", 1, assigned=["$m"], **one)
    yield heartbeat(4, group, "$m", 1, **one)
    yield heartbeat(4, group, "other", 1, **one)
    yield heartbeat(4, group, "$m", 1, groupInstanceId="two")
    yield from joined(version, group, "m2", **one)  # restarted: gets a new member id
    yield heartbeat(4, group, "$m", 1, **one)
    yield heartbeat(4, group, "$m2", 1, **one)
    yield sync(5, group, "$m", 1, **one)
    yield sync(5, group, "$m2", 1, **one)
    yield join(version, group, "$m", **one)
    yield join(version, group, "$m2", protocols=(("range", _OTHER),), **one)
    yield sync(5, group, "$m2", 2, assigned=["$m2"], **one)
    yield request(K.DESCRIBE_GROUPS, 5, {"groups": [group]})
    yield leave(5, group, "unknown", instance="one")
    yield leave(5, group, "", instance="two")
    yield leave(5, group, "", instance="one")
    yield heartbeat(4, group, "$m2", 2, **one)


def _syncs(version: int) -> Iterator[Step]:
    group = f"syncs-{version}"
    named: dict[str, Any] = {"protocolType": "consumer", "protocolName": "range"}
    yield sync(version, group, "m", 1, **named)
    yield sync(version, "", "m", 1, **named)
    yield from joined(3, group, "m")
    yield sync(version, group, "unknown", 1, **named)
    yield sync(version, group, "", 1, **named)
    yield sync(version, group, "$m", 0, **named)
    yield sync(version, group, "$m", 2, **named)
    yield sync(version, group, "$m", 1, protocolType="connect", protocolName="range")
    yield sync(version, group, "$m", 1, protocolType="consumer", protocolName="sticky")
    yield sync(version, group, "$m", 1, protocolType=None, protocolName=None)
    yield sync(version, group, "$m", 1, assigned=["$m", "stranger"], **named)
    yield sync(version, group, "$m", 1, **named)
    yield sync(version, group, "$m", 1, step={"to": FOLLOWER}, **named)
    if version >= 3:
        yield sync(version, group, "$m", 1, groupInstanceId="one", **named)
    yield unsupported(K.SYNC_GROUP, 6 + version)


def _heartbeats(version: int) -> Iterator[Step]:
    group = f"beats-{version}"
    yield heartbeat(version, group, "m", 1)
    yield heartbeat(version, "", "m", 1)
    yield from joined(3, group, "m")
    yield heartbeat(version, group, "$m", 1)
    yield sync(2, group, "$m", 1, assigned=["$m"])
    yield heartbeat(version, group, "$m", 1)
    yield heartbeat(version, group, "$m", 0)
    yield heartbeat(version, group, "$m", -1)
    yield heartbeat(version, group, "$m", 2)
    yield heartbeat(version, group, "", 1)
    yield heartbeat(version, group, "unknown", 1)
    yield {**heartbeat(version, group, "$m", 1), "to": FOLLOWER}
    if version >= 3:
        yield heartbeat(version, group, "$m", 1, groupInstanceId="one")
    yield leave(2, group, "$m")
    yield heartbeat(version, group, "$m", 1)
    yield unsupported(K.HEARTBEAT, 5 + version)


def _leaves(version: int) -> Iterator[Step]:
    group = f"leaves-{version}"
    yield leave(version, group, "m")
    yield leave(version, "", "m")
    yield from stable(group)
    yield leave(version, group, "unknown")
    yield leave(version, group, "")
    yield {**leave(version, group, "$m"), "to": FOLLOWER}
    if version >= 3:
        yield leave(version, group)
        yield leave(version, group, "$m", instance="one")
        yield leave(version, group, "$m", "unknown", "$m")
    yield leave(version, group, "$m")
    yield leave(version, group, "$m")
    yield heartbeat(4, group, "$m", 1)
    yield unsupported(K.LEAVE_GROUP, 6 + version)
