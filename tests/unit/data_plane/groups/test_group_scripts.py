"""Runs scripts of requests against the group coordinator and compares its responses.

A file has the scripts of one theme; a line `== name` begins a script. A script is a list of
blocks. Each block has a command, a line `----`, and the effects of the command. The name of a
request is its command without the options, or the value of its option `as`. If the coordinator
delays a response, a later block shows the name of the request and the response.

`python -m tests.unit.data_plane.groups.test_group_scripts` replaces the recorded responses of every
script with the actual ones. Review the diff.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups.coordinator import GroupCoordinator
from data_plane.groups.group import NO_GENERATION, CommittedOffset, Group
from data_plane.groups.loading import Replay
from data_plane.groups.membership import Join, Joined, Leaving, NoResponse, Sync, Synced
from data_plane.groups.offsets import Commit, Fetched
from data_plane.groups.records import GroupKey, GroupRecord, GroupValue, OffsetValue
from data_plane.groups.table import Append, GroupSettings, Moment, Respond

SCRIPTS = Path(__file__).parent / "scripts"
GROUP = "g"
Lines = list[str]
Words = list[str]


class Script:
    """A coordinator of one partition. The command `written` completes an append."""

    def __init__(self) -> None:
        self._wall_ms = 1_000_000
        self._start(GroupSettings())
        self._lead()

    def _start(self, settings: GroupSettings) -> None:
        uuids = count(1)
        self._core = GroupCoordinator(
            settings,
            partition_of=lambda _group_id: 0,
            new_uuid=lambda: str(next(uuids)),
            now=Moment(self._wall_ms, self._wall_ms),
        )
        self._appends: list[tuple[Append, int]] = []  # unfinished appends, each with its offset
        self._log: dict[int, Sequence[GroupRecord]] = {}
        self._epoch = 0

    def _lead(self) -> None:
        self._core.ownership.begin_loading(0, self._epoch)
        self._core.ownership.finish_loading(0, self._epoch, ())

    def run(self, line: str) -> list[str]:
        """Execute one command; return what happened."""
        verb, *words = line.split()
        plain = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        ticket = named.pop("as", " ".join([verb, *plain]))
        said = getattr(self, verb.replace("-", "_"))(ticket, plain, named)
        return [*said, *self._effects()] or ["ok"]

    def _effects(self) -> list[str]:
        lines = []
        for effect in self._core.table.take_effects():
            if isinstance(effect, Append):
                lines += [f"append {_record(record)}" for record in effect.records]
                offset = len(self._log)
                self._log[offset] = effect.records
                if effect.acks:
                    self._appends.append((effect, offset))
                else:
                    self._core.table.appended(effect.id, ErrorCode.NONE, offset)
            elif isinstance(effect, Respond):
                lines.append(f"{effect.ticket}: {_result(effect.result)}")
        return lines

    # --- Commands ----------------------------------------------------------------------------

    def settings(self, _ticket: str, _plain: Words, named: dict[str, str]) -> Lines:
        self._start(GroupSettings(**{name: int(value) for name, value in named.items()}))
        self._lead()
        return []

    def join(self, ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        version = int(named.get("version", 9))
        instance = named.get("instance")
        protocols = named.get("protocols", "range").split(",")
        self._core.membership.join(
            ticket,
            Join(
                group_id=named.get("group", GROUP),
                member_id=plain[0] if plain else "",
                instance_id=instance,
                needs_known_id=version >= 4 and instance is None,
                may_skip_assignment=version >= 9,
                client_id="c",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=int(named.get("rebalance", 60_000)),
                session_timeout_ms=int(named.get("session", 10_000)),
                protocol_type=named.get("type", "consumer"),
                protocols=tuple((name, _subscription(named)) for name in protocols if name),
            ),
        )
        return []

    def sync(self, ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        pairs = (
            assignment.split(":") for assignment in named.get("assign", "").split(",") if assignment
        )
        self._core.membership.sync(
            ticket,
            Sync(
                group_id=named.get("group", GROUP),
                generation=int(named.get("generation", 1)),
                member_id=plain[0] if plain else "",
                instance_id=named.get("instance"),
                protocol_type=named.get("type"),
                protocol=named.get("protocol"),
                assignments={member: value.encode() for member, value in pairs},
            ),
        )
        return []

    def heartbeat(self, _ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        generation = int(named.get("generation", 1))
        group_id = named.get("group", GROUP)
        error = self._core.membership.heartbeat(
            group_id, generation, plain[0], named.get("instance")
        )
        return [error.name]

    def leave(self, _ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        leaving = [Leaving(member, named.get("instance")) for member in plain]
        if not plain:
            leaving = [Leaving("", named["instance"])]
        error, members = self._core.membership.leave(named.get("group", GROUP), leaving)
        return (
            [error.name] if error else [f"{m.member_id}: {failure.name}" for m, failure in members]
        )

    def commit(self, ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        now_ms = self._core.table.now.wall_ms
        offsets = {}
        for word in plain:
            key, _, offset = word.partition(":")
            expires = int(named["expires"]) if "expires" in named else -1
            offsets[_key(key)] = CommittedOffset(
                int(offset), -1, named.get("metadata", ""), now_ms, expires
            )
        self._core.offsets.commit(
            ticket,
            Commit(
                group_id=named.get("group", GROUP),
                generation=int(named.get("generation", NO_GENERATION)),
                member_id=named.get("member", ""),
                instance_id=named.get("instance"),
                offsets=offsets,
            ),
        )
        return []

    def fetch(self, _ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        wanted = [_key(word) for word in plain] if plain else None
        error, offsets = self._core.offsets.fetch(
            named.get("group", GROUP), wanted, stable="stable" in named
        )
        if error:
            return [error.name]
        return [f"{_name(key)} {_fetched(fetched)}" for key, fetched in offsets.items()] or [
            "nothing"
        ]

    def delete_offsets(self, _ticket: str, plain: Words, _named: dict[str, str]) -> Lines:
        error, errors = self._core.offsets.delete(GROUP, [_key(word) for word in plain])
        return [error.name] if error else [f"{_name(k)}: {e.name}" for k, e in errors.items()]

    def delete_groups(self, _ticket: str, plain: Words, _named: dict[str, str]) -> Lines:
        errors = self._core.offsets.delete_groups(plain)
        return [f"{group}: {error.name}" for group, error in errors.items()]

    def delete_topic(self, _ticket: str, plain: Words, _named: dict[str, str]) -> Lines:
        self._core.offsets.remove_topics(plain)
        return []

    def expire(self, _ticket: str, _plain: Words, _named: dict[str, str]) -> Lines:
        self._core.offsets.expire()
        return []

    def describe(self, _ticket: str, plain: Words, _named: dict[str, str]) -> Lines:
        error, group = self._core.describe(plain[0] if plain else GROUP)
        if error:
            return [error.name]
        return ["Dead" if group is None else _described(group)]

    def list(self, _ticket: str, _plain: Words, named: dict[str, str]) -> Lines:
        split = {name: value.split(",") for name, value in named.items()}
        error, groups = self._core.list_groups(split.get("states", []), split.get("types", []))
        listed = [f"{group.group_id} {group.state.value}" for group in groups]
        return [error.name, *listed] if error else listed or ["nothing"]

    def wait(self, _ticket: str, plain: Words, _named: dict[str, str]) -> Lines:
        """Let this many milliseconds pass; run each action at its deadline."""
        end = self._core.table.now.steady_ms + int(plain[0])
        lines = []
        while True:
            next_ms = self._core.table.timers.next_at_ms()
            at = end if next_ms is None or next_ms > end else next_ms
            self._core.table.now = Moment(at, at)
            self._core.run_due()
            lines += self._effects()
            if at == end:
                return lines

    def written(self, _ticket: str, plain: Words, named: dict[str, str]) -> Lines:
        """Complete the unfinished append number `after` (default: 0), or fail it with an error."""
        append, offset = self._appends.pop(int(named.get("after", 0)))
        error = ErrorCode[plain[0]] if plain else ErrorCode.NONE
        if error:
            self._log[offset] = ()
        self._core.table.appended(append.id, error, -1 if error else offset)
        return []

    def resign(self, _ticket: str, _plain: Words, _named: dict[str, str]) -> Lines:
        self._core.ownership.resign(0)
        return []

    def elected(self, _ticket: str, _plain: Words, _named: dict[str, str]) -> Lines:
        self._epoch += 1
        self._core.ownership.begin_loading(0, self._epoch)
        return []

    def loaded(self, _ticket: str, _plain: Words, named: dict[str, str]) -> Lines:
        replay = Replay()
        for offset, records in self._log.items():
            for record in records:
                replay.apply(record, offset)
        epoch = int(named.get("epoch", self._epoch))
        done = self._core.ownership.finish_loading(0, epoch, replay.groups())
        return [] if done else ["too late"]


def _subscription(named: dict[str, str]) -> bytes:
    topics = [topic for topic in named.get("topics", "t").split(",") if topic]
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names


def _key(word: str) -> tuple[str, int]:
    topic, _, partition = word.rpartition("-")
    return topic, int(partition)


def _name(key: tuple[str, int]) -> str:
    return f"{key[0]}-{key[1]}"


def _fetched(fetched: Fetched) -> str:
    if fetched.error:
        return fetched.error.name
    return "none" if fetched.committed is None else str(fetched.committed.offset)


def _described(group: Group) -> str:
    members = " ".join(f"{m.member_id}:{m.assignment.decode()}" for m in group.members.values())
    return f"{group.state.value} {group.protocol_type} {group.protocol} [{members}]"


def _record(record: GroupRecord) -> str:
    match record.key, record.value:
        case GroupKey(group), GroupValue() as value:
            members = " ".join(f"{m.member_id}:{m.assignment.decode()}" for m in value.members)
            return f"group {group} generation {value.generation} [{members}]"
        case GroupKey(group), _:
            return f"tombstone of group {group}"
        case key, OffsetValue() as value:
            return f"offset {key.group} {key.topic}-{key.partition} {value.offset}"
        case key, _:
            return f"tombstone of offset {key.group} {key.topic}-{key.partition}"


def _result(result: object) -> str:
    match result:
        case NoResponse():
            return "never answered"
        case Joined(error=error) if error:
            return f"{error.name} member {result.member_id or 'none'}"
        case Joined():
            members = " ".join(member.member_id for member in result.members)
            skips = ", skips the assignment" if result.skip_assignment else ""
            return (
                f"member {result.member_id} of generation {result.generation}, {result.protocol},"
                f" leader {result.leader} [{members}]{skips}"
            )
        case Synced():
            return result.error.name if result.error else f"assigned '{result.assignment.decode()}'"
        case dict():
            return ", ".join(f"{_name(key)} {error.name}" for key, error in result.items())
    raise AssertionError(result)


def scripts() -> dict[str, str]:
    """Return the text of every script by its name, in the order of the files."""
    texts: dict[str, str] = {}
    for path in sorted(SCRIPTS.glob("*.txt")):
        for section in path.read_text().split("== ")[1:]:
            name, _, text = section.partition("\n")
            assert name not in texts, f"two scripts are named {name}"
            texts[name] = text.strip() + "\n"
    return texts


def run_script(text: str) -> str:
    """Return the script with its recorded responses replaced by the actual ones."""
    script = Script()
    blocks = []
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        command = next((line for line in lines if not line.startswith("#")), None)
        if command is None:
            blocks.append(block)
            continue
        blocks.append("\n".join([*comments, command, "----", *script.run(command)]))
    return "\n\n".join(blocks) + "\n"


def rewrite(path: Path) -> None:
    """Replace the recorded responses of the file's scripts with the actual ones."""
    sections = [section.partition("\n") for section in path.read_text().split("== ")[1:]]
    path.write_text("\n".join(f"== {name}\n\n{run_script(text)}" for name, _, text in sections))


if __name__ == "__main__":
    for path in sorted(SCRIPTS.glob("*.txt")):
        rewrite(path)


# The decisions of the group coordinator, as scripts.


@pytest.mark.parametrize(("name", "text"), scripts().items(), ids=scripts())
def test_the_coordinator_does_what_the_script_says(name: str, text: str) -> None:
    assert text == run_script(text), name
