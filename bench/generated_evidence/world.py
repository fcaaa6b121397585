"""A generated cluster: three brokers, one of them controller, and clients that create topics.

Every request leaves the events that real nodes would write, so every property holds, except where
`planted` violates one. Time is simulated; the same seed generates the same history.
"""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.generated_evidence.evidence_writer import Boot, Znode, ZooKeeperLog, seal
from bench.generated_evidence.requests import BODY, Write, decided, outcome, received
from event_log.clock import ManualClock
from event_log.commits import CommitOutcome
from event_log.events import (
    BecameActive,
    BrokerRegistered,
    ClaimSent,
    ClientCompleted,
    ClientInvoked,
    CommitAcknowledged,
    CommitSent,
    Connected,
    Disconnected,
    EnvelopeReceived,
    ExecutionStarted,
    ForwardReplied,
    ForwardSent,
    ImageAdvanced,
    MetricsSnapshot,
    Resigned,
    Responded,
    SessionOpened,
    Started,
    Stopped,
)
from event_log.evidence import RunDescription

NODES: Final = ("1", "2", "3")
USERS: Final = ("User:alice", "User:bob", "User:carol")
SOFTWARE: Final = (
    ("librdkafka", "2.11.1"),
    ("apache-kafka-java", "3.9.1"),
    ("kafka-python", "1.4"),
)
METADATA, CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 3, 19, 20, 44
_ALIVE_MAX: Final = 20_000
_OUTCOMES_KEPT: Final = 1_000
_WRITES_OF_A_TERM: Final = 20_000
_EVENTS_BETWEEN_SNAPSHOTS: Final = 20_000


@dataclass(slots=True)
class Counters:
    """The counters of a node."""

    redirected: int = 0
    responded: int = 0


class World:
    """The generated cluster. `planted` lists each violation: property, key, one of its rows.

    `busiest` is the share of the requests that the first broker receives; None: an equal share.
    """

    def __init__(
        self, folder: Path, seed: int, run_id: str = "generated", busiest: float | None = None
    ) -> None:
        self.folder = folder
        self._busiest = busiest
        self.seed = seed
        self.run_id = run_id
        self.clock = ManualClock()
        self.planted: list[tuple[str, str, str]] = []
        self.chance = random.Random(seed)
        self.boots = {node: Boot(folder, run_id, node, self.clock) for node in NODES}
        self.client = Boot(folder, run_id, "client-load", self.clock)
        self.counters = {node: Counters() for node in NODES}
        self.sequences = dict.fromkeys(NODES, 0)
        self.names = 0
        self.alive: deque[tuple[str, int]] = deque()
        self.number = 0
        self.epoch = 0
        self.controller = "3"
        self.sessions: dict[str, str] = {}
        self.since_snapshot = 0
        self.writes_of_term = 0
        self.log = ZooKeeperLog(folder, _first_znodes(), first_zxid=100, clock=self.clock)
        for node in NODES:
            self._start(node)
        self.client.append(Started("load", "generated", 1))
        self.elect("1")

    @property
    def events(self) -> int:
        """The number of events so far."""
        return sum(boot.seq for boot in self.boots.values()) + self.client.seq

    def _any_node(self) -> str:
        if self._busiest is None:
            return self.chance.choice(NODES)
        return NODES[0] if self.chance.random() < self._busiest else self.chance.choice(NODES[1:])

    def _start(self, node: str) -> None:
        boot = self.boots[node]
        session = f"0xb{node}"
        boot.append(Started(boot.boot, "generated", 1))
        boot.append(SessionOpened("broker", session))
        path = f"/brokers/ids/{node}"
        zxid = self.log.commit(session, [("ephemeral", path, "{}")])
        boot.append(BrokerRegistered(zxid, boot.boot, session))
        for at in range(4):
            boot.append(Connected(f"{node}-{at}", "SASL", "SASL_PLAINTEXT", "10.0.0.9", USERS[0]))

    def elect(self, node: str, *, step: int = 1) -> None:
        """Move the controller; the epoch grows by `step`."""
        if self.epoch:
            old = self.boots[self.controller]
            old.append(Resigned(self.epoch, "moved"))
            session = self.sessions[self.controller]
            gone = [("delete", "/controller", "")] if "/controller" in self.log.znodes else []
            self.log.commit(session, gone, kind="close_session")
        self.epoch += step
        self.controller = node
        self.writes_of_term = 0
        boot = self.boots[node]
        session = f"0xc{self.epoch:x}"
        self.sessions[node] = session
        boot.append(SessionOpened("controller", session))
        boot.append(ClaimSent(self.epoch))
        self.log.commit(
            session,
            [
                ("ephemeral", "/controller", f'{{"brokerid":{node}}}'),
                ("set", "/controller_epoch", str(self.epoch)),
            ],
        )
        version = self.log.znodes["/controller_epoch"].version
        zxid = self.log.zxid
        boot.append(BecameActive(self.epoch, version, zxid, 4.0, 9.0))

    def commit(self, operations: list[tuple[str, str, str]], outcomes: list[CommitOutcome]) -> int:
        """Write one fenced multi of the active controller; return its zxid."""
        self.number += 1
        boot = self.boots[self.controller]
        session = self.sessions[self.controller]
        boot.append(CommitSent(self.number, self.epoch, len(operations) + 3, 200))
        old = self.number - _OUTCOMES_KEPT
        pruned = [("delete", f"/bridgehead/outcomes/{old:010}", "")] if old > 0 else []
        listed = f"{self.number}:{len(outcomes)}"
        zxid = self.log.commit(
            session,
            [
                ("set", "/bridgehead/commit", str(self.number)),
                ("create", f"/bridgehead/outcomes/{self.number:010}", listed),
                *pruned,
                *operations,
            ],
            outcomes,
            check=self.log.znodes["/controller_epoch"].version,
        )
        self.clock.advance_ms(1)
        boot.append(CommitAcknowledged(self.number, zxid, session))
        boot.append(ImageAdvanced(zxid, "controller", self.epoch))
        for node in NODES:
            self.boots[node].append(ImageAdvanced(zxid, "broker", self.epoch))
        return zxid

    def new_write(self, node: str | None = None) -> Write:
        """Return the next write: usually it creates a new topic.

        Some writes create an existing topic, change a config or delete a topic instead.
        """
        node = node or self._any_node()
        boot = self.boots[node]
        self.sequences[node] += 1
        sequence = self.sequences[node]
        self.names += 1
        user = USERS[self.names % len(USERS)]
        team = user.partition(":")[2]
        write = Write(
            boot,
            f"{node}.{boot.boot}.1.{sequence}",
            (int(node), boot.boot, sequence),
            CREATE_TOPICS,
            f"{team}-{self.names}",
            user,
        )
        which = self.names % 10
        half = len(self.alive) // 2  # Reuse only the newer half: it is not deleted soon.
        if which in (3, 6) and half:
            name, owner = self.alive[half + self.names % half]
            write.api_key, write.element = INCREMENTAL_ALTER_CONFIGS, f"2:{name}"
            write.principal = USERS[owner]
        elif which == 8 and len(self.alive) > _ALIVE_MAX:
            name, owner = self.alive.popleft()
            write.api_key, write.element, write.principal = DELETE_TOPICS, name, USERS[owner]
        elif which == 9 and half:
            name, owner = self.alive[half + self.names % half]
            write.element, write.code, write.committed_code = name, 36, None
            write.principal = USERS[owner]
        elif which == 1:
            write.op_id = f"op-{self.names}"
        return write

    def effect(self, write: Write) -> list[tuple[str, str, str]]:
        """Return the operations in ZooKeeper that a request causes."""
        name = write.element
        if write.api_key == CREATE_TOPICS:
            self.alive.append((name, USERS.index(write.principal)))
            return [
                ("create", f"/config/topics/{name}", '{"version":1,"config":{}}'),
                ("create", f"/brokers/topics/{name}", '{"version":3,"partitions":{"0":[1,2]}}'),
            ]
        if write.api_key == DELETE_TOPICS:
            return [
                ("delete", f"/config/topics/{name}", ""),
                ("delete", f"/brokers/topics/{name}", ""),
            ]
        config = f'{{"version":1,"config":{{"retention.ms":"{self.names}"}}}}'
        return [("set", f"/config/topics/{name[2:]}", config)]

    def receive(self, write: Write) -> None:
        """Write the events of a request up to its execution."""
        software = SOFTWARE[self.names % len(SOFTWARE)]
        node = write.broker.node
        self.clock.advance_ms(self.chance.randrange(2))
        if write.op_id:
            self.client.append(ClientInvoked(write.op_id, write.api_key, [write.element]))
        connection = f"{node}-{self.names % 4}"
        write.broker.append(received(write, connection, "FORWARD", BODY, software))
        local = node == self.controller
        controller = int(self.controller)
        write.broker.append(ForwardSent(write.request_id, write.identity, 1, controller, local))
        self.counters[node].redirected += not local
        active = self.boots[self.controller]
        active.append(EnvelopeReceived(write.request_id, write.identity, 1, "User:broker"))
        active.append(
            ExecutionStarted(
                request_id=write.request_id,
                identity=write.identity,
                epoch=self.epoch,
                image_zxid=self.log.zxid,
                api_key=write.api_key,
                api_version=5,
                client_id="client",
                principal=write.executed_for or write.principal,
                token_authenticated=False,
                client_host="10.0.0.9",
                listener="SASL",
                security_protocol="SASL_PLAINTEXT",
                body_sha256=write.executed_body,
            )
        )

    def respond(self, write: Write, image_zxid: int, zxid: int) -> int:
        """Write the events of the decision and the response; return the last seq."""
        elements = [(write.element, write.code)]
        self.boots[self.controller].append(decided(write, self.epoch, image_zxid, zxid, write.code))
        error = 0 if write.response is None else None
        relayed = write.relayed if error == 0 else None
        write.broker.append(ForwardReplied(write.request_id, 1, error, zxid, relayed))
        if write.op_id:
            outcome = "ok" if write.code == 0 else "fail"
            self.client.append(ClientCompleted(write.op_id, outcome, elements))
        self.counters[write.broker.node].responded += 1
        return write.broker.append(
            Responded(write.request_id, write.api_key, 5, "FORWARD", write.response, False, zxid)
        )

    def batch(self, writes: list[Write]) -> int:
        """Execute requests and commit them together; return the zxid."""
        image_zxid = self.log.zxid
        for write in writes:
            self.receive(write)
        operations: list[tuple[str, str, str]] = []
        outcomes = []
        for write in writes:
            if write.committed_code is None:
                continue
            if write.committed_code == 0:
                operations += self.effect(write)
            outcomes.append(outcome(write, write.committed_code))
        zxid = self.commit(operations, outcomes) if outcomes else image_zxid
        for write in writes:
            self.respond(write, image_zxid, zxid)
        self.writes_of_term += len(writes)
        return zxid

    def step(self) -> None:
        """Add some reads, one batch of writes and, after enough writes, an election."""
        for _ in range(self.chance.randrange(3)):
            self.clock.advance_ms(1)
            boot = self.boots[self._any_node()]
            self.read(boot, f"{boot.node}-0")
        self.batch([self.new_write() for _ in range(self.chance.randrange(1, 4))])
        if self.writes_of_term > _WRITES_OF_A_TERM:
            self.elect(str(int(self.controller) % 3 + 1))
        self.since_snapshot += 1
        if self.since_snapshot * 20 > _EVENTS_BETWEEN_SNAPSHOTS:
            self.since_snapshot = 0
            for node in NODES:
                self.snapshot(node)

    def read(self, boot: Boot, connection: str) -> str:
        """Serve a read on a connection; return the request's id."""
        self.sequences[boot.node] += 1
        request_id = f"{boot.node}.{boot.boot}.1.{self.sequences[boot.node]}"
        read = Write(boot, request_id, (0, "", 0), METADATA, "", USERS[0])
        boot.append(received(read, connection, "LOCAL", None, SOFTWARE[0]))
        boot.append(Responded(request_id, METADATA, 12, "LOCAL", None, False, self.log.zxid))
        self.counters[boot.node].responded += 1
        return request_id

    def snapshot(self, node: str, *, wrong_by: int = 0) -> int:
        """Write a node's counters; return the event's seq."""
        counters = self.counters[node]
        values: dict[str, float] = {
            "num_client_forwarding_to_controller_count": 0,
            "num_messages_redirected_count": counters.redirected + wrong_by,
            "num_messages_redirected_rate": 12.5,
            "request_forwarding_to_controller_authorization_fail_count": 0,
            "not_controller_responses_count": 0,
            'kafka_network_requestmetrics_requests_count{request="all"}': counters.responded,
        }
        return self.boots[node].append(MetricsSnapshot(values))

    def finish(self) -> None:
        """Stop all processes and seal the run."""
        for node, boot in self.boots.items():
            self.snapshot(node)
            for at in range(4):
                boot.append(Disconnected(f"{node}-{at}"))
            boot.append(Stopped("signal"))
            boot.close()
        self.client.append(Stopped("done"))
        self.client.close()
        self.log.close()
        run = RunDescription(run_id=self.run_id, seed=self.seed, super_users=["User:admin"])
        seal(self.folder, run, self.log)


def _first_znodes() -> dict[str, Znode]:
    """Return the first znodes. ACLs grant each user all rights on topics with the user's prefix."""
    znodes = {
        "/controller_epoch": Znode(1, 1, 0, "0"),
        "/bridgehead/commit": Znode(1, 1, 0, "0"),
    }
    for user in USERS:
        acls = [
            {"principal": user, "permissionType": "Allow", "operation": "All", "host": "*"},
            {
                "principal": "User:mallory",
                "permissionType": "Deny",
                "operation": "All",
                "host": "*",
            },
        ]
        prefix = user.partition(":")[2] + "-"
        path = f"/kafka-acl-extended/prefixed/Topic/{prefix}"
        znodes[path] = Znode(2, 2, 0, json.dumps({"version": 1, "acls": acls}))
    return znodes
