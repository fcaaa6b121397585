"""Violations, one function each, that can be planted in a generated history.

Each docstring begins with the properties that the history then violates (docs/properties.md). Each
function leaves the rest of the history consistent and yields every violation that a judge must
find, with one of its rows. The judge must find no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bench.generated_evidence.requests import BODY, Write, decided, outcome, received
from bench.generated_evidence.world import CREATE_TOPICS, USERS, World
from event_log.events import (
    Authenticated,
    BecameActive,
    Connected,
    Disconnected,
    EnvelopeReceived,
    ForwardSent,
    ImageAdvanced,
    Resigned,
    Responded,
)

Planted = tuple[str, str, str]  # property, key, one of its rows


def _creation(world: World) -> Write:
    """Execute writes up to the next creation that no client records; return it, not executed."""
    while True:
        write = world.new_write()
        if write.api_key == CREATE_TOPICS and write.code == 0 and write.op_id is None:
            return write
        world.batch([write])


def _name(write: Write) -> str:
    return "/".join((*map(str, write.identity), write.element))


def unknown_session_writes(world: World) -> Iterator[Planted]:
    """W1, W2, W6: a session that belongs to no broker changes a config."""
    zxid = world.log.commit("0xbad", [("create", f"/config/topics/x-{world.log.zxid}", "{}")])
    for name in ("W1", "W2", "W6"):
        yield name, str(zxid), f"zxid/{zxid}"


def fence_is_missing(world: World) -> Iterator[Planted]:
    """W2: the controller omits the epoch check from a multi."""
    session = world.sessions[world.controller]
    zxid = world.log.commit(session, [("create", f"/config/topics/x-{world.log.zxid}", "{}")])
    yield "W2", str(zxid), f"zxid/{zxid}"


def zombie_writes(world: World) -> Iterator[Planted]:
    """W1, W3: the former controller writes once more, with a valid epoch check."""
    old = world.sessions[world.controller]
    world.elect(str(int(world.controller) % 3 + 1))
    version = world.log.znodes["/controller_epoch"].version
    path = f"/config/topics/x-{world.log.zxid}"
    zxid = world.log.commit(old, [("create", path, "{}")], check=version)
    yield "W1", str(zxid), f"zxid/{zxid}"
    yield "W3", f"zxid/{zxid}", f"zxid/{zxid}"


def broker_accepts_stale_epoch(world: World) -> Iterator[Planted]:
    """W3: a broker accepts metadata of a former controller."""
    world.elect(str(int(world.controller) % 3 + 1))
    world.batch([_creation(world)])
    boot = world.boots["2"]
    seq = boot.append(ImageAdvanced(world.log.zxid, "broker", world.epoch - 1))
    yield "W3", boot.place(seq), f"event/{boot.place(seq)}"


def epoch_is_skipped(world: World) -> Iterator[Planted]:
    """W4: an election raises the epoch by two."""
    world.elect(str(int(world.controller) % 3 + 1), step=2)
    zxid = world.log.zxid
    yield "W4", str(zxid), f"zxid/{zxid}"


def controller_znode_is_deleted(world: World) -> Iterator[Planted]:
    """W5, W6: an unknown session deletes /controller; the next write is an election."""
    zxid = world.log.commit("0xbad", [("delete", "/controller", "")], kind="delete")
    yield "W5", str(zxid), f"zxid/{zxid}"
    yield "W6", str(zxid), f"zxid/{zxid}"
    world.elect(str(int(world.controller) % 3 + 1))


def former_controller_stays_active(world: World) -> Iterator[Planted]:
    """K7: the former controller resigns only after it has applied its successor's metadata."""
    old, epoch = world.boots[world.controller], world.epoch
    world.elect(str(int(world.controller) % 3 + 1))
    old.append(BecameActive(epoch, 0, world.log.zxid, 4.0, 9.0))
    seq = old.append(ImageAdvanced(world.log.zxid, "broker", world.epoch))
    yield "K7", old.place(seq), f"event/{old.place(seq)}"
    old.append(Resigned(epoch, "late"))


def acknowledged_is_lost(world: World) -> Iterator[Planted]:
    """D1, D5: a creation is acknowledged, but never committed."""
    write = _creation(world)
    write.committed_code = None
    world.batch([write])
    key = f"{write.request_id}/{write.element}"
    place = write.broker.place(write.broker.seq - 1)
    yield "D1", key, f"event/{place}"
    yield "D5", key, f"event/{place}"


def rejected_is_committed(world: World) -> Iterator[Planted]:
    """D2: a creation is rejected (INVALID_REQUEST) and committed."""
    write = _creation(world)
    write.code = 42
    zxid = world.batch([write])
    yield "D2", f"{write.request_id}/{write.element}", f"zxid/{zxid}"


def committed_twice(world: World) -> Iterator[Planted]:
    """D3: an element is committed a second time."""
    write = _creation(world)
    world.batch([write])
    again = world.commit([], [outcome(write)])
    yield "D3", _name(write), f"zxid/{again}"


def unfinished_is_committed_twice(world: World) -> Iterator[Planted]:
    """D3, D4: a client disconnects, and its request is committed twice."""
    write = _creation(world)
    boot = write.broker
    connection = f"gone-{write.request_id}"
    software = ("librdkafka", "2.11.1")
    place = boot.place(boot.append(received(write, connection, "FORWARD", BODY, software)))
    boot.append(ForwardSent(write.request_id, write.identity, 1, int(world.controller), False))
    world.counters[boot.node].redirected += 1
    first = world.commit(world.effect(write), [outcome(write)])
    world.commit([], [outcome(write)])
    boot.append(Disconnected(connection))
    yield "D3", _name(write), f"zxid/{first}"
    yield "D4", write.request_id, f"event/{place}"


def missing_topic_exists(world: World) -> Iterator[Planted]:
    """D5: TOPIC_ALREADY_EXISTS for a topic that never existed."""
    write = _creation(world)
    write.code, write.committed_code = 36, None
    world.batch([write])
    place = write.broker.place(write.broker.seq - 1)
    yield "D5", f"{write.request_id}/{write.element}", f"event/{place}"


def _executed(world: World, write: Write) -> str:
    """Execute and commit a write; return the place of its `execution_started`."""
    controller = world.boots[world.controller]
    world.receive(write)
    place = controller.place(controller.seq - 1)
    zxid = world.commit(world.effect(write), [outcome(write)])
    world.respond(write, zxid - 1, zxid)
    return place


def principal_is_swapped(world: World) -> Iterator[Planted]:
    """F1: the controller decides for another principal."""
    write = _creation(world)
    write.executed_for = "User:mallory"
    place = _executed(world, write)
    yield "F1", place, f"event/{place}"


def bytes_are_changed(world: World) -> Iterator[Planted]:
    """F2: the controller executes a body that differs from the client's."""
    write = _creation(world)
    write.executed_body = "bad"
    place = _executed(world, write)
    yield "F2", place, f"event/{place}"


def response_is_changed(world: World) -> Iterator[Planted]:
    """F2: the broker relays a response that differs from the controller's."""
    write = _creation(world)
    write.relayed = "bad"
    world.batch([write])
    place = write.broker.place(write.broker.seq - 2)
    yield "F2", place, f"event/{place}"


def not_controller_leaks(world: World) -> Iterator[Planted]:
    """F5: a client gets NOT_CONTROLLER for a forwarded request."""
    write = _creation(world)
    write.response = 41
    world.batch([write])
    place = write.broker.place(write.broker.seq - 1)
    yield "F5", write.request_id, f"event/{place}"


def resend_gets_another_response(world: World) -> Iterator[Planted]:
    """F7: a resent Envelope gets TOPIC_ALREADY_EXISTS for the topic that it created."""
    write = _creation(world)
    world.batch([write])
    controller = world.boots[world.controller]
    controller.append(EnvelopeReceived(write.request_id, write.identity, 2, "User:broker"))
    zxid = world.log.zxid
    seq = controller.append(decided(write, world.epoch, zxid, zxid + 1, 36))
    yield "F7", _name(write), f"event/{controller.place(seq)}"


def unauthorized_creation(world: World) -> Iterator[Planted]:
    """A1: a principal without rights creates a topic."""
    write = _creation(world)
    owner, write.principal = write.principal, "User:mallory"
    world.receive(write)
    effect = [(kind, path, data) for kind, path, data in _effect_of(world, write, owner)]
    zxid = world.commit(effect, [outcome(write)])
    world.respond(write, zxid - 1, zxid)
    yield "A1", f"{write.request_id}/{write.element}", f"zxid/{zxid}"


def expired_client_is_served(world: World) -> Iterator[Planted]:
    """A10: a request arrives a second after its client's credential has expired."""
    boot, user = world.boots["2"], USERS[0]
    connection = f"expired-{boot.seq}"
    boot.append(Connected(connection, "SASL", "SASL_PLAINTEXT", "10.0.0.9", user))
    ends_at_ms = world.clock.wall_ms() + 50
    boot.append(Authenticated(connection, "OAUTHBEARER", user, False, False, ends_at_ms))
    world.clock.advance_ms(1_050)
    place = boot.place(boot.seq)
    request_id = world.read(boot, connection)
    boot.append(Disconnected(connection))
    yield "A10", request_id, f"event/{place}"


def _effect_of(world: World, write: Write, owner: str) -> list[tuple[str, str, str]]:
    sender, write.principal = write.principal, owner
    effect = world.effect(write)
    write.principal = sender
    return effect


def image_goes_back(world: World) -> Iterator[Planted]:
    """R2: the zxid of a broker's image decreases."""
    boot = world.boots["3"]
    seq = boot.append(ImageAdvanced(world.log.zxid - 50, "broker", world.epoch))
    yield "R2", boot.place(seq), f"event/{boot.place(seq)}"
    boot.append(ImageAdvanced(world.log.zxid, "broker", world.epoch))


def counter_is_wrong(world: World) -> Iterator[Planted]:
    """K1: a counter is one too high."""
    boot = world.boots["2"]
    place = boot.place(world.snapshot("2", wrong_by=1))
    yield "K1", f"{place}/num_messages_redirected_count", f"event/{place}"


def responded_twice(world: World) -> Iterator[Planted]:
    """K2: a request is answered twice."""
    write = _creation(world)
    zxid = world.batch([write])
    boot = write.broker
    seq = boot.append(Responded(write.request_id, write.api_key, 5, "FORWARD", None, False, zxid))
    world.counters[boot.node].responded += 1
    yield "K2", write.request_id, f"event/{boot.place(seq)}"


KINDS: Final[tuple[Callable[[World], Iterator[Planted]], ...]] = (
    unknown_session_writes,
    fence_is_missing,
    zombie_writes,
    broker_accepts_stale_epoch,
    epoch_is_skipped,
    controller_znode_is_deleted,
    former_controller_stays_active,
    acknowledged_is_lost,
    rejected_is_committed,
    committed_twice,
    unfinished_is_committed_twice,
    missing_topic_exists,
    principal_is_swapped,
    bytes_are_changed,
    response_is_changed,
    not_controller_leaks,
    resend_gets_another_response,
    unauthorized_creation,
    expired_client_is_served,
    image_goes_back,
    counter_is_wrong,
    responded_twice,
)
