"""Transcripts of decisions: each command to a cluster, followed by what it prints.

    > create t partitions=2 rf=3 retention.ms=5
    t: NONE
      topic t 1,2,3 2,3,1 retention.ms=5
      state t-0 leader=1 isr=1,2,3 epochs=0,0
      state t-1 leader=2 isr=2,3,1 epochs=0,0
    waits for LEADERS: t

A command decides a request and applies its records. It prints the outcomes, the records and what
the response waits for. `/` separates the entries of a request. Options of a request are `dry`,
`drafted`, `v=VERSION`, `timeout=MS` and `deny=OPERATION:TYPE,...`. With `committed=ELEMENT,...` an
earlier controller has committed these elements. With `late` the request times out while it waits.
With `resolvable=HOST,...` only these host names have an address. With `response` the command prints
the response, too. Commands that set up the cluster print nothing.

TRANSCRIPTS=rewrite writes the actual output into the tests; review the diff.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import random
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from immutables import Map

from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages import alter_client_quotas as quotas
from bridgehead.kafka_wire.messages import alter_configs as replacing
from bridgehead.kafka_wire.messages import alter_partition_reassignments as reassigning
from bridgehead.kafka_wire.messages import create_partitions as growing
from bridgehead.kafka_wire.messages import create_topics as creating
from bridgehead.kafka_wire.messages import elect_leaders as electing
from bridgehead.kafka_wire.messages import incremental_alter_configs as changing
from bridgehead.kafka_wire.messages import list_partition_reassignments as listing
from bridgehead.kafka_wire.messages import update_features as features
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicState
from bridgehead.kafka_wire.messages.drafted import alter_topics, delete_topics
from cluster_model.configs.broker_configs import EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.partitions.elections import elect_new
from cluster_model.records import (
    AssignmentRecord,
    ConfigRecord,
    ConfigResource,
    DeletionMarkerRecord,
    PartitionRecord,
    Record,
    TopicRecord,
    TopicRemovalRecord,
)
from controller.apis import build_admin_apis
from controller.apis.base import AdminApi, Decision, Outcome, RequestContext, Results, WaitFor
from controller.loop.background_jobs import Elections, complete_reassignments, elect_leaders
from node.assembly.parts import api_settings
from node.config import read_config
from tests.unit.controller.request_contexts import a_context

Words = Sequence[str]
_SHOWN: Final = 8  # an element with more records prints only their number
_OPTIONS: Final = ("v", "timeout", "deny", "committed", "resolvable")
_FLAGS: Final = ("dry", "drafted", "late", "response")


def topic_id(name: str) -> bytes:
    """Return the id of a topic that the command `topic` creates."""
    return name.encode().ljust(16, b"-")


class Request:
    """A parsed command: the entries of the request, and its options."""

    def __init__(self, words: Words) -> None:
        self.entries: list[list[str]] = [[]]
        self.options: dict[str, str] = {}
        for word in words:
            name, has_value, value = word.partition("=")
            if name in (_OPTIONS if has_value else _FLAGS):
                self.options[name] = value
            elif word == "/":
                self.entries.append([])
            else:
                self.entries[-1].append(word)
        self.dry = "dry" in self.options
        self.timeout_ms = int(self.options.get("timeout", 9))

    def names(self, option: str) -> list[str]:
        """Return the values of an option such as `deny=a,b`."""
        return [part for part in self.options.get(option, "").split(",") if part]


def _create(request: Request) -> Any:
    """`create t partitions=2 rf=3 retention.ms=5 / u assign=0:1,2;1:2,3`."""
    topics = []
    for name, *words in request.entries:
        fields = _fields(words)
        assignment = _assignment(fields.pop("assign", ""))
        default = "-1" if assignment else "1"
        partitions, factor = int(fields.pop("partitions", default)), int(fields.pop("rf", default))
        assignments = [creating.CreatableReplicaAssignment(p, ids) for p, ids in assignment]
        configs = [creating.CreatableTopicConfig(*item) for item in fields.items()]
        topics.append(creating.CreatableTopic(name, partitions, factor, assignments, configs))
    return creating.CreateTopicsRequest(topics, request.timeout_ms, request.dry)


def _delete(request: Request) -> Any:
    """`delete t id:u +id:t`: t by name, u by id, and t by name and id in one entry."""
    topics = []
    for word in request.entries[0]:
        name, by_id, of = word.partition("id:")
        named = None if by_id and not name else name.rstrip("+") or of
        topics.append(DeleteTopicState(named, topic_id(of) if by_id else bytes(16)))
    names = [topic.name or "" for topic in topics]
    return delete_topics.DeleteTopicsRequest(topics, names, request.timeout_ms, request.dry)


def _grow(request: Request) -> Any:
    """`grow t 3 2,3 1,2 / u 4`: the new total, then the replicas of each new partition."""
    topics = []
    for name, count, *assigned in request.entries:
        assignments = [growing.CreatePartitionsAssignment(_ids(replicas)) for replicas in assigned]
        topics.append(growing.CreatePartitionsTopic(name, int(count), assignments or None))
    return growing.CreatePartitionsRequest(topics, request.timeout_ms, request.dry)


def _elect(request: Request) -> Any:
    """`elect preferred t:0,1`; `elect preferred` alone means all partitions."""
    kind, *words = request.entries[0]
    named = [electing.TopicPartitions(n, _ids(ids)) for n, ids in (w.split(":") for w in words)]
    kinds = {"preferred": 0, "unclean": 1}
    return electing.ElectLeadersRequest(kinds[kind], named or None, request.timeout_ms)


def _reassign(request: Request) -> Any:
    """`reassign t 0:3,4 1:cancel`."""
    topics = []
    for name, *words in request.entries:
        targets = [word.split(":") for word in words]
        partitions = [
            reassigning.ReassignablePartition(int(p), None if to == "cancel" else _ids(to))
            for p, to in targets
        ]
        topics.append(reassigning.ReassignableTopic(name, partitions))
    return reassigning.AlterPartitionReassignmentsRequest(topics=topics)


def _list(request: Request) -> Any:
    """`list t:0,1`; `list` alone means all partitions."""
    pairs = [word.split(":") for word in request.entries[0]]
    topics = [listing.ListPartitionReassignmentsTopics(name, _ids(ids)) for name, ids in pairs]
    return listing.ListPartitionReassignmentsRequest(topics=topics or None)


def _alter(request: Request) -> Any:
    """`alter t partitions=4 rf=3 assign=0:3,1`: KIP-4's AlterTopics."""
    topics = []
    for name, *words in request.entries:
        fields = _fields(words)
        assignment = _assignment(fields.get("assign", ""))
        partitions, factor = int(fields.get("partitions", "-1")), int(fields.get("rf", "-1"))
        replicas = [alter_topics.PartitionReplicas(p, ids) for p, ids in assignment]
        topics.append(alter_topics.AlterTopic(name, partitions, factor, replicas))
    return alter_topics.AlterTopicsRequest(topics)


def _quota(request: Request) -> Any:
    """`quota user:u,client-id:c consumer_byte_rate=1 x=`: an empty value removes the quota."""
    entries = []
    for entity, *words in request.entries:
        parts = [quotas.EntityData(*part.split(":", 1)) for part in entity.split(",")]
        pairs = [word.split("=") for word in words]
        ops = [quotas.OpData(key, float(value or 0), not value) for key, value in pairs]
        entries.append(quotas.EntryData(parts, ops))
    return quotas.AlterClientQuotasRequest(entries, request.dry)


def _set(request: Request) -> Any:
    """`set 2:a flush.ms=7 / 4:1 log.cleaner.threads=2`: IncrementalAlterConfigs."""
    resources = []
    for kind, name, configs in _resources(request):
        changes = [changing.AlterableConfig(key, 0, value) for key, value in configs.items()]
        resources.append(changing.AlterConfigsResource(kind, name, changes))
    return changing.IncrementalAlterConfigsRequest(resources, request.dry)


def _replace(request: Request) -> Any:
    """`replace 2:a flush.ms=7`: AlterConfigs."""
    resources = []
    for kind, name, configs in _resources(request):
        new = [replacing.AlterableConfig(*item) for item in configs.items()]
        resources.append(replacing.AlterConfigsResource(kind, name, new))
    return replacing.AlterConfigsRequest(resources, request.dry)


def _features(request: Request) -> Any:
    """`features NAME LEVEL TYPE`."""
    updates = [features.FeatureUpdateKey(n, int(a), int(b)) for n, a, b in request.entries]
    return features.UpdateFeaturesRequest(feature_updates=updates)


def _resources(request: Request) -> Iterator[tuple[int, str, dict[str, str]]]:
    for resource, *words in request.entries:
        kind, _, name = resource.partition(":")
        yield int(kind), name, _fields(words)


# Verb -> API key, default version, message.
_REQUESTS: Final[dict[str, tuple[int, int, Callable[[Request], Any]]]] = {
    "create": (19, 7, _create),
    "delete": (20, 6, _delete),
    "grow": (37, 3, _grow),
    "elect": (43, 2, _elect),
    "reassign": (45, 0, _reassign),
    "list": (46, 0, _list),
    "alter": (10001, 0, _alter),
    "quota": (49, 1, _quota),
    "set": (44, 1, _set),
    "replace": (33, 2, _replace),
    "features": (57, 1, _features),
}


@cache
def _apis(*properties: str) -> Mapping[int, AdminApi]:
    fixed = ("listeners=PLAINTEXT://127.0.0.1:0", "broker.id=1", "zookeeper.connect=h:1")
    config = read_config("\n".join((*fixed, *properties)))
    effective = EffectiveBrokerConfig.of(config.broker)
    return build_admin_apis(api_settings(config, lambda: effective))


class Cluster:
    """A controller's image and its APIs. Brokers 1, 2 and 3 are live."""

    def __init__(self) -> None:
        self.apis = _apis()
        self.image = MetadataImage(controller_epoch=5)
        self.random = random.Random(3)
        self._commands: dict[str, Callable[[Words], Iterator[str] | None]] = {
            "properties": self._properties,
            "brokers": self._brokers,
            "topic": self._topic,
            "state": self._state,
            "mark": lambda words: self.replay(*map(DeletionMarkerRecord, words)),
            "stored": self._stored,
            "steps": self._steps,
            "show": self._show,
        }
        self._brokers(("1", "2", "3"))

    def replay(self, *records: Record) -> None:
        """Apply records to the image."""
        self.image = self.image.replay(records)

    def _properties(self, words: Words) -> None:
        """`properties num.partitions=4`: set properties of the controller's node."""
        self.apis = _apis(*words)

    def _brokers(self, words: Words) -> None:
        """`brokers 1:rack 2`: only these brokers are live. Dead leaders are replaced."""
        live = {}
        for number, _, rack in (word.partition(":") for word in words):
            live[int(number)] = BrokerRegistration(int(number), int(number), (), rack or None)
        self.image = replace(self.image, brokers=Map(live))
        for records in elect_leaders(
            lambda: self.image, sorted(self.image.topics), Elections(lambda *_: False)
        ):
            self.replay(*records)

    def _topic(self, words: Words) -> None:
        """`topic t 1,2 2,3 retention.ms=5`: create t; elect leaders among live replicas."""
        name, *rest = words
        assignment = tuple(tuple(_ids(word)) for word in rest if "=" not in word)
        configs = _fields([word for word in rest if "=" in word])
        self.replay(TopicRecord(name, topic_id(name), assignment, configs))
        for partition, replicas in enumerate(assignment):
            state = elect_new(replicas, self.image.brokers, 5)
            self.replay(*[PartitionRecord(name, partition, state)] if state else ())

    def _state(self, words: Words) -> None:
        """`state t-0 2 1,2`: set a partition's leader and ISR."""
        name, _, partition = words[0].rpartition("-")
        state = self.image.topics[name].states[int(partition)]
        state = state._replace(leader=int(words[1]), isr=tuple(_ids(words[2])))
        after = state._replace(partition_epoch=state.partition_epoch + 1)
        self.replay(PartitionRecord(name, int(partition), after))

    def _stored(self, words: Words) -> None:
        """`stored users/u consumer_byte_rate=1`: store configs."""
        resource = ConfigResource(*words[0].split("/"))
        self.replay(ConfigRecord(resource, _fields(words[1:])))

    def _steps(self, _words: Words) -> Iterator[str]:
        """`steps`: continue each reassignment until it ends or must wait; print the records."""
        for records in complete_reassignments(lambda: self.image, sorted(self.image.topics)):
            self.replay(*records)
            yield from map(_text, records)

    def _show(self, words: Words) -> Iterator[str]:
        """`show t`: print the assignment and the states of a topic."""
        topic = self.image.topics.get(words[0])
        if topic is None:
            yield f"no topic {words[0]}"
            return
        yield _text(AssignmentRecord(topic.name, topic.assignment, topic.adding, topic.removing))
        for partition, state in enumerate(topic.states):
            yield _text(PartitionRecord(topic.name, partition, state))

    def decide(self, command: str) -> Decision:
        """Decide a request without applying its records."""
        return self._decide(*shlex.split(command))[-1]

    def _decide(
        self, verb: str, *words: str
    ) -> tuple[Request, AdminApi, RequestContext, Any, dict[str, Outcome], Decision]:
        key, version, build = _REQUESTS[verb]
        request = Request(words)
        denied = request.names("deny")
        context = a_context(
            key,
            int(request.options.get("v", version)),
            lambda operation, kind, _name: not {f"{operation}:{kind}", "all"} & {*denied},
            random=self.random,
            dialect="drafted" if "drafted" in request.options else "shipped",
            resolvable=frozenset(request.names("resolvable")),
        )
        committed = {
            name: Outcome(ErrorCode.NONE, topic_id=topic_id(name) if key in (19, 20) else None)
            for name in request.names("committed")
        }
        message = build(request)
        decision = self.apis[key].decide(context, message, self.image, committed)
        return request, self.apis[key], context, message, committed, decision

    def run(self, command: str) -> Iterator[str]:
        """Execute one command and yield what it prints."""
        verb, *words = shlex.split(command)
        if verb in self._commands:
            yield from self._commands[verb](words) or ()
            return
        request, api, context, message, outcomes, decision = self._decide(verb, *words)
        for decided in decision.elements:
            outcomes[decided.element] = decided.outcome
            yield f"{decided.element or '(request)'}: {_outcome(decided.outcome)}"
            yield from _records(decided.records, "  ")
            yield from _records(decided.following, "  later ")
            self.replay(*decided.records, *decided.following)
        wait, is_late = decision.wait, "late" in request.options
        waiting = [_waiting(*item) for item in wait.topics.items() if outcomes[item[0]].succeeded]
        if wait.condition is not WaitFor.NOTHING and waiting:
            yield f"waits for {wait.condition.name}: {' '.join(waiting)}"
        if verb == "delete" and not is_late:
            self.replay(*map(TopicRemovalRecord, self.image.deletions))
        if "response" in request.options:
            results = Results(outcomes, self.image, frozenset(wait.topics if is_late else ()))
            key, version, dialect = context.api_key, context.api_version, context.client.dialect
            body = encode_response(key, version, api.response(context, message, results), dialect)
            yield from _response(decode_body(key, "response", version, body, dialect))


def _fields(words: Words) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part not in ("", "none")]


def _assignment(text: str) -> list[tuple[int, list[int]]]:
    pairs = [part.split(":") for part in text.split(";") if part]
    return [(int(partition), _ids(ids)) for partition, ids in pairs]


def _join(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def _outcome(outcome: Outcome) -> str:
    return outcome.error.name + (f' "{outcome.message}"' if outcome.message is not None else "")


def _waiting(element: str, target: Any) -> str:
    """Return an element. If it waits for a deletion, add the topic in parentheses."""
    return f"{element} ({target.rstrip(b'-').decode()})" if isinstance(target, bytes) else element


def _records(records: Sequence[Record], indent: str) -> Iterator[str]:
    if len(records) > _SHOWN:
        yield f"{indent}{len(records)} x {type(records[-1]).__name__}"
    else:
        yield from (indent + _text(record) for record in records)


def _text(record: Record) -> str:
    match record:
        case TopicRecord(name, _, assignment, configs):
            return " ".join(["topic", name, *_replicas(assignment), *_pairs(configs)])
        case AssignmentRecord(name, assignment, adding, removing):
            moves = [f"adding {p}:{_join(ids)}" for p, ids in adding.items()]
            moves += [f"removing {p}:{_join(ids)}" for p, ids in removing.items()]
            return " ".join(["assignment", name, *_replicas(assignment), *moves])
        case PartitionRecord(name, partition, state):
            epochs = f"epochs={state.leader_epoch},{state.partition_epoch}"
            unclean = " recovering" if state.recovering else ""
            leads = f"leader={state.leader} isr={_join(state.isr)}"
            return f"state {name}-{partition} {leads} {epochs}{unclean}"
        case DeletionMarkerRecord(name):
            return f"mark {name}"
        case TopicRemovalRecord(name):
            return f"remove {name}"
        case ConfigRecord(resource, configs):
            return " ".join(["configs", "/".join(resource), *_pairs(configs)])
        case _:
            return repr(record)


def _replicas(assignment: Sequence[Sequence[int]]) -> list[str]:
    if len(assignment) > _SHOWN:
        return [f"({len(assignment)} partitions)"]
    return [_join(replicas) for replicas in assignment]


def _pairs(configs: Any) -> list[str]:
    return [f"{name}={value}" for name, value in configs.items()]


def _response(body: dict[str, Any]) -> Iterator[str]:
    """Yield the fields of a response, then its rows."""
    rows = [row for value in body.values() if isinstance(value, list) for row in value]
    top_level = {k: v for k, v in body.items() if not isinstance(v, list) and k != "throttleTimeMs"}
    for fields in [top_level, *rows] if top_level else rows:
        shown = {k: f"{len(v)} configs" if k == "configs" and v else v for k, v in fields.items()}
        yield f"< {json.dumps(shown, ensure_ascii=False)}"


def check(transcript: str) -> Cluster:
    """Execute the commands of a transcript and compare what they print."""
    cluster = Cluster()
    expected = textwrap.dedent(transcript).strip()
    actual = []
    for line in expected.splitlines():
        if line.startswith("> "):
            actual += [line, *cluster.run(line.removeprefix("> "))]
    if os.environ.get("TRANSCRIPTS") == "rewrite" and "\n" in transcript:
        path = Path(inspect.stack()[1].filename)
        block = "\n" + textwrap.indent("\n".join(actual), "    ") + "\n    "
        path.write_text(path.read_text().replace(transcript, block.replace("\\", r"\\")))
    else:
        difference = "\n".join(difflib.ndiff(expected.splitlines(), actual))
        assert actual == expected.splitlines(), f"- expected, + printed:\n{difference}"
    return cluster
