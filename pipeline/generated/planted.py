"""Breaches, one function each: what goes wrong, and which violations must be found for it.

Each leaves a history that is consistent but for itself, and names every violation that it is, with
one of its rows: the judge must find these and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from event_log.commits import CommitOutcome
from event_log.connections import Disconnected
from event_log.events import (
    Answered,
    ClaimSent,
    EnvelopeReceived,
    ForwardSent,
    ImageAdvanced,
    Stopped,
)
from pipeline.generated.requests import BODY, Write, decided, received
from pipeline.generated.world import CREATE_TOPICS, World

Breach = tuple[str, str, str]  # property, key, one of its rows


def _outcome(write: Write, code: int = 0) -> CommitOutcome:
    broker_id, incarnation, sequence = write.identity
    return CommitOutcome(
        broker_id=broker_id,
        incarnation=incarnation,
        sequence=sequence,
        request_id=write.request_id,
        element=write.element,
        error=code,
    )


def _creation(world: World) -> Write:
    """Return a creation that no client history speaks of."""
    while True:
        write = world.new_write()
        if write.api_key == CREATE_TOPICS and write.code == 0 and write.op_id is None:
            return write
        world.batch([write])


def _name(write: Write) -> str:
    return "/".join((*map(str, write.identity), write.element))


def stranger_writes(world: World) -> Iterator[Breach]:
    """W1, W2, W6: a session of nobody's changes a config."""
    zxid = world.log.commit("0xbad", [("create", f"/config/topics/x-{world.log.zxid}", "{}")])
    for name in ("W1", "W2", "W6"):
        yield name, str(zxid), f"zxid/{zxid}"


def fence_is_missing(world: World) -> Iterator[Breach]:
    """W2: the controller itself forgets the check."""
    session = world.sessions[world.controller]
    zxid = world.log.commit(session, [("create", f"/config/topics/x-{world.log.zxid}", "{}")])
    yield "W2", str(zxid), f"zxid/{zxid}"


def zombie_writes(world: World) -> Iterator[Breach]:
    """W1, W3: the last controller writes once more, with a check that holds."""
    old = world.sessions[world.controller]
    world.elect(str(int(world.controller) % 3 + 1))
    version = world.log.znodes["/controller_epoch"].version
    path = f"/config/topics/x-{world.log.zxid}"
    zxid = world.log.commit(old, [("create", path, "{}")], check=version)
    yield "W1", str(zxid), f"zxid/{zxid}"
    yield "W3", f"zxid/{zxid}", f"zxid/{zxid}"


def broker_believes_the_old_epoch(world: World) -> Iterator[Breach]:
    """W3: a broker takes metadata of a controller that was superseded."""
    world.elect(str(int(world.controller) % 3 + 1))
    world.batch([_creation(world)])
    boot = world.boots["2"]
    seq = boot.append(ImageAdvanced(world.log.zxid, "broker", world.epoch - 1))
    yield "W3", boot.place(seq), f"event/{boot.place(seq)}"


def epoch_is_skipped(world: World) -> Iterator[Breach]:
    """W4: an election raises the epoch by two."""
    world.elect(str(int(world.controller) % 3 + 1), step=2)
    zxid = world.log.zxid
    yield "W4", str(zxid), f"zxid/{zxid}"


def controller_znode_is_deleted(world: World) -> Iterator[Breach]:
    """W5, W6: a stranger deletes /controller; nobody writes until the next election."""
    zxid = world.log.commit("0xbad", [("delete", "/controller", "")], kind="delete")
    yield "W5", str(zxid), f"zxid/{zxid}"
    yield "W6", str(zxid), f"zxid/{zxid}"
    world.elect(str(int(world.controller) % 3 + 1))


def acknowledged_is_lost(world: World) -> Iterator[Breach]:
    """D1, D5: a creation is acknowledged that never was."""
    write = _creation(world)
    write.committed_code = None
    world.batch([write])
    key = f"{write.request_id}/{write.element}"
    place = write.broker.place(write.broker.seq - 1)
    yield "D1", key, f"event/{place}"
    yield "D5", key, f"event/{place}"


def refused_is_done(world: World) -> Iterator[Breach]:
    """D2: a creation is refused (INVALID_REQUEST) and carried out."""
    write = _creation(world)
    write.code = 42
    zxid = world.batch([write])
    yield "D2", f"{write.request_id}/{write.element}", f"zxid/{zxid}"


def outcome_stands_twice(world: World) -> Iterator[Breach]:
    """D3: an element is committed a second time."""
    write = _creation(world)
    world.batch([write])
    again = world.commit([], [_outcome(write)])
    yield "D3", _name(write), f"zxid/{again}"


def unanswered_happens_twice(world: World) -> Iterator[Breach]:
    """D3, D4: a client is gone, and its request is carried out twice."""
    write = _creation(world)
    boot = write.broker
    connection = f"gone-{write.request_id}"
    software = ("librdkafka", "2.11.1")
    place = boot.place(boot.append(received(write, connection, "FORWARD", BODY, software)))
    boot.append(ForwardSent(write.request_id, write.identity, 1, int(world.controller), False))
    world.counters[boot.node].redirected += 1
    first = world.commit(world.effect(write), [_outcome(write)])
    world.commit([], [_outcome(write)])
    boot.append(Disconnected(connection))
    yield "D3", _name(write), f"zxid/{first}"
    yield "D4", write.request_id, f"event/{place}"


def ghost_is_reported(world: World) -> Iterator[Breach]:
    """D5: TOPIC_ALREADY_EXISTS about a topic that never was."""
    write = _creation(world)
    write.code, write.committed_code = 36, None
    world.batch([write])
    place = write.broker.place(write.broker.seq - 1)
    yield "D5", f"{write.request_id}/{write.element}", f"event/{place}"


def _executed(world: World, write: Write) -> str:
    """Carry a write out; return the place of the event that tells what was executed."""
    office = world.boots[world.controller]
    world.receive(write)
    place = office.place(office.seq - 1)
    zxid = world.commit(world.effect(write), [_outcome(write)])
    world.answer(write, zxid - 1, zxid)
    return place


def principal_is_swapped(world: World) -> Iterator[Breach]:
    """F1: the controller decides for somebody else."""
    write = _creation(world)
    write.executed_for = "User:mallory"
    place = _executed(world, write)
    yield "F1", place, f"event/{place}"


def bytes_are_changed(world: World) -> Iterator[Breach]:
    """F2: the controller decides another request than the client wrote."""
    write = _creation(world)
    write.executed_body = "bad"
    place = _executed(world, write)
    yield "F2", place, f"event/{place}"


def answer_is_changed(world: World) -> Iterator[Breach]:
    """F2: the broker relays another answer than the controller gave."""
    write = _creation(world)
    write.relayed = "bad"
    world.batch([write])
    place = write.broker.place(write.broker.seq - 2)
    yield "F2", place, f"event/{place}"


def not_controller_leaks(world: World) -> Iterator[Breach]:
    """F5: a client of a forwarded request is told NOT_CONTROLLER."""
    write = _creation(world)
    write.answer = 41
    world.batch([write])
    place = write.broker.place(write.broker.seq - 1)
    yield "F5", write.request_id, f"event/{place}"


def copy_is_answered_otherwise(world: World) -> Iterator[Breach]:
    """F7: an Envelope that came again is told that the topic exists: its own."""
    write = _creation(world)
    world.batch([write])
    office = world.boots[world.controller]
    office.append(EnvelopeReceived(write.request_id, write.identity, 2, "User:broker"))
    zxid = world.log.zxid
    seq = office.append(decided(write, world.epoch, zxid, zxid + 1, 36))
    yield "F7", _name(write), f"event/{office.place(seq)}"


def nobody_had_allowed_it(world: World) -> Iterator[Breach]:
    """A1: a principal without any right creates a topic."""
    write = _creation(world)
    owner, write.principal = write.principal, "User:mallory"
    world.receive(write)
    effect = [(kind, path, data) for kind, path, data in _effect_of(world, write, owner)]
    zxid = world.commit(effect, [_outcome(write)])
    world.answer(write, zxid - 1, zxid)
    yield "A1", f"{write.request_id}/{write.element}", f"zxid/{zxid}"


def _effect_of(world: World, write: Write, owner: str) -> list[tuple[str, str, str]]:
    asker, write.principal = write.principal, owner
    effect = world.effect(write)
    write.principal = asker
    return effect


def image_goes_back(world: World) -> Iterator[Breach]:
    """R2: a broker's image is older than it was."""
    boot = world.boots["3"]
    seq = boot.append(ImageAdvanced(world.log.zxid - 50, "broker", world.epoch))
    yield "R2", boot.place(seq), f"event/{boot.place(seq)}"
    boot.append(ImageAdvanced(world.log.zxid, "broker", world.epoch))


def counter_is_wrong(world: World) -> Iterator[Breach]:
    """K1: a counter counts something else once."""
    boot = world.boots["2"]
    place = boot.place(world.snapshot("2", wrong_by=1))
    yield "K1", f"{place}/num_messages_redirected_count", f"event/{place}"


def answer_comes_twice(world: World) -> Iterator[Breach]:
    """K2: a request is answered twice."""
    write = _creation(world)
    zxid = world.batch([write])
    boot = write.broker
    seq = boot.append(Answered(write.request_id, write.api_key, 5, "FORWARD", None, False, zxid))
    world.counters[boot.node].answered += 1
    yield "K2", write.request_id, f"event/{boot.place(seq)}"


KINDS: Final[tuple[Callable[[World], Iterator[Breach]], ...]] = (
    stranger_writes,
    fence_is_missing,
    zombie_writes,
    broker_believes_the_old_epoch,
    epoch_is_skipped,
    controller_znode_is_deleted,
    acknowledged_is_lost,
    refused_is_done,
    outcome_stands_twice,
    unanswered_happens_twice,
    ghost_is_reported,
    principal_is_swapped,
    bytes_are_changed,
    answer_is_changed,
    not_controller_leaks,
    copy_is_answered_otherwise,
    nobody_had_allowed_it,
    image_goes_back,
    counter_is_wrong,
    answer_comes_twice,
)


def after_the_end(world: World) -> Iterator[Breach]:
    """K3: a node goes on after it has stopped; to be planted last."""
    boot = world.boots["1"]
    first = boot.append(Stopped("signal"))
    seq = boot.append(ClaimSent(world.epoch))
    yield "K3", boot.place(seq), f"event/{boot.place(first)}"
