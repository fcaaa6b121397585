"""Attempts on the gRPC channel between brokers, with messages written by hand.

An outcome is `answer CODE` with the outer error code of an Envelope, `welcome` when the stream
opens, `closed`, or the status with which gRPC ended the stream. A batch is a `BrokerBatch` of the
stream.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from tests.hostile.attempt import Attempt, attempt
from tests.hostile.requests import create_topics, principal
from tests.hostile.target import CONTROLLER, FOLLOWER, Target
from tests.hostile.wire import CLOSED, Field, Wire, framed, head, joined, varint

METHOD: Final = "/bridgehead.envelope.v1.Controller/Channel"
HELLO, ENVELOPES, LOWEST, HEARTBEAT, APPLIED = 1, 2, 3, 4, 5
_WITHIN_S: Final = 8.0


Value = int | bytes | str


def message(*fields: tuple[int, Value]) -> bytes:
    """A protobuf message whose fields are varints or bytes."""
    out = b""
    for tag, value in fields:
        if isinstance(value, int):
            out += varint(tag << 3) + varint(value & 0xFFFFFFFFFFFFFFFF)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(tag << 3 | 2) + varint(len(data)) + data
    return out


def parsed(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message. Each field is a varint or bytes."""
    at = 0

    def read() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = read()
        if tag & 7 == 0:
            yield tag >> 3, read()
        else:
            size = read()
            yield tag >> 3, data[at : at + size]
            at += size


def hello(broker: int, incarnation: str) -> bytes:
    """A batch that contains only a Hello."""
    return message((HELLO, message((1, broker), (2, incarnation))))


def envelope(broker: int, incarnation: str, sequence: int, **changes: Value) -> bytes:
    """A batch with an Envelope: a CreateTopics request of bob, who has no rights."""
    values: dict[str, tuple[int, Value]] = {
        "broker": (1, broker),
        "incarnation": (2, incarnation),
        "sequence": (3, sequence),
        "header": (5, joined(head(19, 4))),
        "data": (6, joined(create_topics("loot"))),
        "principal": (7, principal("User", "bob")),
        "host": (8, b"\x7f\0\0\1"),
        "listener": (9, "OPEN"),
        "protocol": (10, "PLAINTEXT"),
        "dialect": (11, "shipped"),
        "remaining": (12, 5_000),
        "request_id": (13, f"hostile-{sequence}"),
        "attempt": (14, 1),
    }
    for name, value in changes.items():
        values[name] = (values[name][0], value)
    return message((ENVELOPES, message(*values.values())))


class Stream:
    """An open stream to the controller; `close` ends it."""

    def __init__(
        self, address: str, batches: Sequence[bytes], credentials: grpc.ChannelCredentials | None
    ) -> None:
        options = [("grpc.ssl_target_name_override", f"broker-{CONTROLLER}.bridgehead")]
        self._channel = (
            grpc.insecure_channel(address)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for batch in batches:
            self._outgoing.put(batch)
        call = self._channel.stream_stream(METHOD, None, None)
        self._call = call(iter(self._outgoing.get, None), timeout=_WITHIN_S)

    def outcome(self, responses: int) -> str:
        """Wait for `responses` responses to Envelopes. With 0, wait until the stream opens."""
        codes: list[str] = []
        try:
            for batch in self._call:
                for tag, value in parsed(batch):
                    if tag == 2 and isinstance(value, bytes):
                        codes.append(str(dict(parsed(value)).get(2, 0)))
                if len(codes) >= responses:
                    return f"answer {' '.join(codes)}" if codes else "welcome"
        except grpc.RpcError as broken:
            return str(broken.code().name)
        return CLOSED

    def close(self) -> None:
        self._outgoing.put(None)
        self._call.cancel()
        self._channel.close()


def credentials(target: Target, pair: tuple[Path, Path] | None) -> grpc.ChannelCredentials:
    """Trust the cluster; present the certificate and key, if there are any."""
    authority = target.files.authority.read_bytes()
    if pair is None:
        return grpc.ssl_channel_credentials(authority)
    certificate, key = (path.read_bytes() for path in pair)
    return grpc.ssl_channel_credentials(authority, key, certificate)


def batches() -> list[list[Field]]:
    """Return a broker's batches, field by field, for the mutations."""
    whole = envelope(12, "life", 1)
    parts = [
        list(_fields_of(value)) if isinstance(value, bytes) and tag == ENVELOPES else []
        for tag, value in parsed(whole)
    ]
    progress = message((LOWEST, 1), (HEARTBEAT, 1), (APPLIED, 7))
    return [
        [Field("tags", whole[:1]), *_sized(parts[0])],
        [*_fields_of(progress)],
        [Field("tags", whole[:1]), *_sized(parts[0]), *_fields_of(progress)],
    ]


def _fields_of(data: bytes) -> Iterator[Field]:
    """Yield keys, lengths, texts and numbers of a message that contains no other message."""
    for tag, value in parsed(data):
        if isinstance(value, int):
            yield from (Field("tags", varint(tag << 3)), Field("int", varint(value)))
        else:
            yield Field("tags", varint(tag << 3 | 2))
            yield from (Field("length", varint(len(value))), Field("text", value))


def _sized(fields: list[Field]) -> list[Field]:
    return [Field("length", varint(sum(len(field.data) for field in fields))), *fields]


Pair = Callable[[Target], tuple[Path, Path] | None]
Batches = Callable[[Target], Sequence[bytes]]


def _stolen(broker: int) -> Pair:
    """Return a broker's certificate and key, which an insider has stolen."""
    return lambda target: target.files.issue("broker", f"broker-{broker}.bridgehead")


def _incarnation(target: Target, broker: int) -> str:
    return target.ready(broker)["incarnation"]


def _sent(pair: Pair, batches: Batches, responses: int = 1) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        stream = Stream(
            target.ready(CONTROLLER)["grpc"], batches(target), credentials(target, pair(target))
        )
        try:
            return stream.outcome(responses)
        finally:
            stream.close()

    return run


def _as_follower(target: Target) -> Sequence[bytes]:
    name = _incarnation(target, FOLLOWER)
    return hello(FOLLOWER, name), envelope(FOLLOWER, name, 10**9)


def _no_tls(target: Target) -> str:
    stream = Stream(target.ready(CONTROLLER)["grpc"], _as_follower(target), None)
    try:
        return stream.outcome(1)
    finally:
        stream.close()


def _bytes_to_port(data: bytes) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with Wire(target.ready(CONTROLLER)["grpc"], timeout_s=5) as wire:
            wire.raw(data)
            wire.half_close()
            return "loot" if b"loot" in wire.rest() else CLOSED

    return run


def _other_method(target: Target) -> str:
    channel = grpc.secure_channel(
        target.ready(CONTROLLER)["grpc"],
        credentials(target, _stolen(FOLLOWER)(target)),
        [("grpc.ssl_target_name_override", f"broker-{CONTROLLER}.bridgehead")],
    )
    try:
        method = "/bridgehead.envelope.v1.Controller/Shutdown"
        channel.unary_unary(method, None, None)(b"", timeout=_WITHIN_S)
    except grpc.RpcError as broken:
        return str(broken.code().name)
    finally:
        channel.close()
    return "answered"


NO_STREAM: Final = ("UNAVAILABLE",)
HANDSHAKES: Final = (
    ("no certificate", _sent(lambda _: None, _as_follower), *NO_STREAM),
    (
        "a certificate of another authority",
        _sent(lambda t: t.files.issue("broker", "broker-2.bridgehead", foreign=True), _as_follower),
        *NO_STREAM,
    ),
    (
        "a client's certificate",
        _sent(lambda t: t.files.issue("admin", "admin@example.org"), _as_follower),
        "PERMISSION_DENIED",
    ),
    (
        "a host name that only begins like a broker's",
        _sent(lambda t: t.files.issue("broker", "broker-2.bridgehead.example"), _as_follower),
        "PERMISSION_DENIED",
    ),
    ("the controller's certificate", _sent(_stolen(CONTROLLER), _as_follower), "PERMISSION_DENIED"),
    ("broker 12's certificate", _sent(_stolen(12), _as_follower), "PERMISSION_DENIED"),
    (
        "a broker's host, mallory's name",
        _sent(lambda t: t.files.issue("mallory", "broker-2.bridgehead"), _as_follower),
        "answer 31",
    ),
    ("no TLS", _no_tls, *NO_STREAM),
    ("a Kafka frame", _bytes_to_port(framed(joined(head(18, 0)))), CLOSED),
    ("HTTP/1.1", _bytes_to_port(b"GET / HTTP/1.1\r\n\r\n"), CLOSED),
    ("HTTP/2 without TLS", _bytes_to_port(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)), CLOSED),
    ("a method that does not exist", _other_method, "UNIMPLEMENTED"),
)


def _after_hello(*batches: bytes) -> Batches:
    return lambda target: (hello(FOLLOWER, _incarnation(target, FOLLOWER)), *batches)


def _insider(**changes: Value) -> Callable[[Target], str]:
    """Send an Envelope with replaced fields, using broker 2's certificate."""

    def batches(target: Target) -> Sequence[bytes]:
        name = _incarnation(target, FOLLOWER)
        values: dict[str, Any] = {
            "broker": FOLLOWER,
            "incarnation": name,
            "sequence": time.monotonic_ns(),
        }
        return hello(FOLLOWER, name), envelope(**{**values, **changes})

    return _sent(_stolen(FOLLOWER), batches)


def _without_hello(*batches: bytes) -> Callable[[Target], str]:
    return _sent(_stolen(FOLLOWER), lambda _: batches)


def _of_controller(target: Target) -> Sequence[bytes]:
    own_incarnation, other = (_incarnation(target, broker) for broker in (FOLLOWER, CONTROLLER))
    return hello(FOLLOWER, own_incarnation), envelope(CONTROLLER, other, 10**9)


_HEADER: Final = joined(head(19, 4))
INSIDERS: Final = (
    ("an Envelope before Hello", _without_hello(envelope(2, "x", 1)), "INVALID_ARGUMENT"),
    ("an empty batch before Hello", _without_hello(b""), "INVALID_ARGUMENT"),
    ("noise instead of Hello", _without_hello(b"\xff" * 60), "INVALID_ARGUMENT"),
    ("a Hello without a broker id", _without_hello(message((HELLO, b""))), "PERMISSION_DENIED"),
    ("a Hello of broker -1", _without_hello(hello(-1, "x")), "PERMISSION_DENIED"),
    ("a Hello of the controller", _without_hello(hello(CONTROLLER, "x")), "PERMISSION_DENIED"),
    ("another incarnation of broker 2", _without_hello(hello(2, "x"), envelope(2, "x", 1)), "answer 41"),
    ("an Envelope of the controller", _sent(_stolen(FOLLOWER), _of_controller), "answer 31"),
    ("an Envelope of broker 0", _insider(broker=0), "answer 31"),
    ("an Envelope of another incarnation", _insider(incarnation="y"), "answer 31"),
    ("a sequence below the floor", _insider(sequence=0), "answer 42"),
    ("no principal", _insider(principal=b""), "answer 97"),
    ("half a principal", _insider(principal=principal("User", "admin")[:6]), "answer 97"),
    ("an address of three bytes", _insider(host=b"\x7f\0\0"), "answer 42"),
    ("no address", _insider(host=b""), "answer 42"),
    ("an unknown dialect", _insider(dialect="kraft"), "answer 42"),
    ("no header", _insider(header=b""), "answer 35"),
    ("half a header", _insider(header=_HEADER[:5]), "answer 35"),
    ("no body", _insider(data=b""), "answer 35"),
    ("a body with an array of two billion", _insider(data=b"\x7f\xff\xff\xff"), "answer 35"),
    ("an Envelope inside", _insider(header=joined(head(58, 0, flexible=True))), "answer 42"),
    ("Metadata inside", _insider(header=joined(head(3, 1))), "answer 42"),
    ("an unknown API inside", _insider(header=joined(head(999, 0))), "answer 42", "answer 35"),
    ("a request id of 1 MB", _insider(request_id="x" * 1_000_000, host=b""), CLOSED),
    ("a request id with a line break", _insider(request_id="x\n{}", host=b""), CLOSED),
    ("noise after Hello", _sent(_stolen(2), _after_hello(b"\xff" * 60)), CLOSED),
    ("Hello twice", _sent(_stolen(2), lambda t: (*_after_hello()(t), *_after_hello()(t)), 0), "welcome"),
)  # fmt: skip


def channel_attempts() -> list[Attempt]:
    """Return the attempts of this module."""
    return [
        *(attempt("gRPC, handshake", name, run, *right) for name, run, *right in HANDSHAKES),
        *(attempt("gRPC, an insider", name, run, *right) for name, run, *right in INSIDERS),
    ]
