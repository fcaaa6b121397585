"""Generates straight-line encoders and decoders from the tables, one pair for each version.

Interpreting the tables would be ten times slower. The code for a struct in one version reads the
struct's fields in order. It reads adjacent fixed-size fields with one `unpack`. It compares every
length with the number of remaining bytes before it allocates memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator
from typing import Any, Final

from bridgehead.kafka_wire.primitives import (
    STRING_BYTES_MAX,
    ElementCount,
    WireError,
    check_tags,
    damaged_text,
    decode_compact_length,
    decode_varint,
    encode_varint,
    skip_bytes,
    skip_tagged_fields,
)
from bridgehead.kafka_wire.schema import (
    RECORDS,
    STRING,
    Array,
    FixedList,
    Primitive,
    Wire,
    WireType,
    fields_of,
)

Decoder = Callable[[bytes, int, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], None]
Skipper = Callable[[bytes, int, int, int], int]
SharedDecoder = Callable[[bytes, int, int, int], tuple[FixedList, int]]


class _Source:
    """Lines of one function, and the names they use."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.names: dict[str, Any] = {
            "WireError": WireError,
            "varint": decode_varint,
            "compact_length": decode_compact_length,
            "encode_varint": encode_varint,
            "damaged_text": damaged_text,
            "skip": skip_tagged_fields,
            "skip_bytes": skip_bytes,
            "check_tags": check_tags,
        }
        self._count = 0

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def name(self, value: Any, stem: str) -> str:
        self._count += 1
        name = f"{stem}_{self._count}"
        self.names[name] = value
        return name

    def compile(self, function: str) -> Any:
        # The source is built from our own tables only; no input ever reaches it.
        exec("\n".join(self.lines), self.names)  # noqa: S102
        return self.names[function]


def _runs(fields: list[Wire]) -> Iterator[list[Wire]]:
    """Group adjacent fixed-size fields; every other field is a group of its own."""
    run: list[Wire] = []
    for field in fields:
        if isinstance(field.type, Primitive) and field.type.code is not None:
            run.append(field)
            continue
        if run:
            yield run
            run = []
        yield [field]
    if run:
        yield run


def _format(run: list[Wire]) -> struct.Struct:
    return struct.Struct(
        ">" + "".join(str(f.type.code) for f in run if isinstance(f.type, Primitive))
    )


def _is_fixed(run: list[Wire]) -> bool:
    kind = run[0].type
    return isinstance(kind, Primitive) and kind.code is not None


class Generator:
    """Codecs of one version of one message and of the structs within it."""

    def __init__(
        self,
        version: int,
        flexible: bool,
        unread: Container[str] = (),
        repeated: Container[str] = (),
        count: ElementCount | None = None,
    ) -> None:
        """Decoders leave arrays named in `unread` empty.

        Consecutive messages share an array named in `repeated` while its bytes are the same.
        Decoders add all elements and tagged fields to `count`, before they allocate memory.
        """
        self._count = count
        self._unread = unread
        self._repeated = repeated
        self._version = version
        self._flexible = flexible
        self._decoders: dict[type[Any], Decoder] = {}
        self._encoders: dict[type[Any], Encoder] = {}

    def _present(self, target: type[Any]) -> tuple[list[Wire], list[Wire]]:
        fields = [field for field in fields_of(target) if self._version in field.versions]
        plain = [field for field in fields if field.tag is None]
        tagged = sorted((f for f in fields if f.tag is not None), key=lambda f: f.tag or 0)
        return plain, tagged

    # --- Decoding ------------------------------------------------------------------------

    def decoder(self, target: type[Any]) -> Decoder:
        """Return `decode(data, at, end) -> (message, at)` for one struct."""
        if target not in self._decoders:
            self._decoders[target] = self._build_decoder(target)
        return self._decoders[target]

    def _build_decoder(self, target: type[Any]) -> Decoder:
        source = _Source("def decode(data, at, end):")
        plain, tagged = self._present(target)
        for run in _runs(plain):
            if _is_fixed(run):
                layout = _format(run)
                unpack = source.name(layout.unpack_from, "unpack")
                targets = ", ".join(f"f_{field.name}" for field in run)
                source.add(1, f"{targets}, = {unpack}(data, at)", f"at += {layout.size}")
            else:
                self._decode_value(source, 1, run[0], f"f_{run[0].name}")
        if self._flexible:
            self._decode_tags(source, target, tagged)
        source.names["target"] = target
        present = {field.name for field in (*plain, *tagged)}
        arguments = [
            f"f_{field.name}" if field.name in present else self._default(source, field)
            for field in fields_of(target)
        ]
        source.add(1, f"return target({', '.join(arguments)}), at")
        decoder: Decoder = source.compile("decode")
        return decoder

    def _default(self, source: _Source, field: Wire) -> str:
        if isinstance(field.default, list):
            return "[]"
        if isinstance(field.type, type):
            return "None" if field.default is None else source.name(field.type, "struct") + "()"
        return source.name(field.default, "default")

    def _decode_length(self, source: _Source, depth: int, kind: WireType, field: Wire) -> None:
        """Read the count of elements or bytes into `n`. Below 0 means null, if that is allowed."""
        if self._flexible:
            source.add(depth, "n = data[at] - 1", "at += 1")
            source.add(depth, "if n > 126: n, at = compact_length(data, at - 1)")
        else:
            layout = struct.Struct(">h" if kind is STRING else ">i")
            unpack = source.name(layout.unpack_from, "unpack")
            source.add(depth, f"n, = {unpack}(data, at)", f"at += {layout.size}")
        if self._version not in field.nullable and kind is not RECORDS:
            source.add(depth, f"if n < 0: raise WireError('{field.name} must not be null')")

    def _decode_value(self, source: _Source, depth: int, field: Wire, into: str) -> None:
        kind = field.type
        if isinstance(kind, type):
            self._decode_struct(source, depth, field, into)
            return
        self._decode_length(source, depth, kind, field)
        if self._version in field.nullable or kind is RECORDS:
            # Kafka reads every negative length as null.
            source.add(depth, f"if n < 0: {into} = None", "else:")
            depth += 1
        if isinstance(kind, Array):
            self._decode_array(source, depth, kind, into, field)
            return
        if kind is STRING and self._flexible:
            source.add(
                depth, f"if n > {STRING_BYTES_MAX}: raise WireError('{field.name} is too long')"
            )
        source.add(
            depth,
            "stop = at + n",
            "if stop > end: raise WireError('the data ends within " + field.name + "')",
        )
        if kind is STRING:
            source.add(depth, f"try: {into} = data[at:stop].decode()")
            source.add(depth, f"except UnicodeDecodeError: {into} = damaged_text(data[at:stop])")
        else:
            source.add(depth, f"{into} = data[at:stop]")
        source.add(depth, "at = stop")

    def _decode_struct(self, source: _Source, depth: int, field: Wire, into: str) -> None:
        assert isinstance(field.type, type)
        decode = source.name(self.decoder(field.type), "decode")
        if self._version in field.nullable:
            # A nullable struct is preceded by a byte: negative for null.
            source.add(depth, "at += 1", f"if data[at - 1] > 127: {into} = None", "else:")
            depth += 1
        source.add(depth, f"{into}, at = {decode}(data, at, end)")

    def _decode_array(
        self, source: _Source, depth: int, kind: Array, into: str, field: Wire
    ) -> None:
        too_many = f"raise WireError('{field.name} claims more elements than the data holds')"
        element = kind.of
        self._add_to_count(source, depth, "n")
        if isinstance(element, Primitive) and element.code is not None:
            source.names["unpack_from"] = struct.unpack_from
            source.add(
                depth,
                f"if n * {element.size} > end - at: {too_many}",
                f"{into} = list(unpack_from({_format_of_array(element.code, 'n')}, data, at))",
                f"at += n * {element.size}",
            )
            return
        # Every element takes at least one byte, so the data holds at most one element per byte.
        source.add(depth, f"if n > end - at: {too_many}", f"{into} = []")
        if field.name in self._unread and isinstance(element, type):
            skip = source.name(self._skipper(element), "skip")
            source.add(depth, f"at = {skip}(data, at, end, n)")
            return
        if field.name in self._repeated and isinstance(element, type):
            decode = source.name(_sharing(self.decoder(element)), "decode")
            source.add(depth, f"{into}, at = {decode}(data, at, end, n)")
            return
        add = f"add_{field.name}"
        source.add(depth, f"{add} = {into}.append")
        source.add(depth, "for _ in range(n):")
        if isinstance(element, type):
            decode = source.name(self.decoder(element), "decode")
            source.add(depth + 1, f"element, at = {decode}(data, at, end)", f"{add}(element)")
        else:
            inner = Wire(field.name, "", element, range(0), range(0), None, None)
            self._decode_value(source, depth + 1, inner, "element")
            source.add(depth + 1, f"{add}(element)")

    def _add_to_count(self, source: _Source, depth: int, number: str) -> None:
        if self._count is not None:
            source.names["count"] = self._count.add
            source.add(depth, f"count({number})")

    def _skipper(self, target: type[Any]) -> Skipper:
        """Return `skip(data, at, end, count) -> at` for structs without nested structs."""
        source = _Source("def skip_structs(data, at, end, count):")
        source.add(1, "for _ in range(count):")
        plain, tagged = self._present(target)
        assert not tagged
        for run in _runs(plain):
            if _is_fixed(run):
                source.add(2, f"at += {_format(run).size}")
            else:
                assert isinstance(run[0].type, Primitive)
                self._decode_length(source, 2, run[0].type, run[0])
                source.add(2, "if n > 0: at += n")
        if self._flexible:
            source.add(2, "tags = data[at]", "at += 1", "if tags:")
            source.add(3, "tags, at = varint(data, at - 1)", "at = skip(data, at, tags)")
        source.add(1, "if at > end: raise WireError('the data ends within an array')", "return at")
        return _remembering(source.compile("skip_structs"))

    def _decode_tags(self, source: _Source, target: type[Any], tagged: list[Wire]) -> None:
        tags = {field.tag for field in tagged}
        # Kafka rejects the tags that only other versions of the struct use.
        foreign = tuple(
            tag for field in fields_of(target) if (tag := field.tag) is not None and tag not in tags
        )
        for field in tagged:
            source.add(1, f"f_{field.name} = {self._default(source, field)}")
        source.add(1, "tags = data[at]", "at += 1", "if tags:")
        source.add(2, "if tags > 127: tags, at = varint(data, at - 1)")
        self._add_to_count(source, 2, "tags")
        if not tagged and not foreign:
            source.add(2, "at = skip(data, at, tags)")
            return
        # As in Kafka: the last of duplicate tags wins, order does not matter, and the size of a
        # known field is ignored. An unknown field must be complete.
        source.add(2, "check_tags(tags)", "for _ in range(tags):")
        source.add(3, "tag, at = varint(data, at)", "size, at = varint(data, at)")
        for count, field in enumerate(tagged):
            source.add(3, f"{'el' if count else ''}if tag == {field.tag}:")
            if _is_fixed([field]):
                layout = _format([field])
                unpack = source.name(layout.unpack_from, "unpack")
                source.add(4, f"f_{field.name}, = {unpack}(data, at)", f"at += {layout.size}")
            else:
                self._decode_value(source, 4, field, f"f_{field.name}")
        if foreign:
            source.add(3, f"{'el' if tagged else ''}if tag in {foreign!r}:")
            source.add(4, "raise WireError('tag %d is not of this version' % tag)")
        source.add(3, "else: at = skip_bytes(data, at, size)")

    # --- Encoding ------------------------------------------------------------------------

    def encoder(self, target: type[Any]) -> Encoder:
        """Return `encode(message, out)` for one struct; it appends to the bytearray `out`."""
        if target not in self._encoders:
            self._encoders[target] = self._build_encoder(target)
        return self._encoders[target]

    def _build_encoder(self, target: type[Any]) -> Encoder:
        source = _Source("def encode(message, out):")
        plain, tagged = self._present(target)
        for run in _runs(plain):
            if _is_fixed(run):
                pack = source.name(_format(run).pack, "pack")
                values = ", ".join(f"message.{field.name}" for field in run)
                source.add(1, f"out += {pack}({values})")
            else:
                source.add(1, f"value = message.{run[0].name}")
                self._encode_value(source, 1, run[0], "value")
        if self._flexible:
            self._encode_tags(source, tagged)
        source.add(1, "return None")
        encoder: Encoder = source.compile("encode")
        return encoder

    def _encode_length(self, source: _Source, depth: int, kind: WireType, length: str) -> None:
        if self._flexible:
            source.add(depth, f"n = {length} + 1", "if n < 128: out.append(n)")
            source.add(depth, "else: out += encode_varint(n)")
        else:
            pack = source.name(struct.Struct(">h" if kind is STRING else ">i").pack, "pack")
            source.add(depth, f"out += {pack}({length})")

    def _encode_value(self, source: _Source, depth: int, field: Wire, value: str) -> None:
        kind = field.type
        if self._version in field.nullable or kind is RECORDS:
            null = "b'\\0'" if self._flexible else "b'\\xff\\xff'"
            if not self._flexible and kind is not STRING:
                null = "b'\\xff\\xff\\xff\\xff'"
            if isinstance(kind, type):
                null = "b'\\xff'"
            source.add(depth, f"if {value} is None: out += {null}", "else:")
            depth += 1
            if isinstance(kind, type):
                source.add(depth, "out += b'\\1'")
        if isinstance(kind, type):
            encode = source.name(self.encoder(kind), "encode")
            source.add(depth, f"{encode}({value}, out)")
        elif isinstance(kind, Array):
            self._encode_length(source, depth, kind, f"len({value})")
            self._encode_elements(source, depth, kind, value, field)
        else:
            if kind is STRING:
                source.add(depth, f"{value} = {value}.encode()")
                if self._flexible:
                    source.add(depth, f"if len({value}) > {STRING_BYTES_MAX}:")
                    source.add(depth + 1, f"raise WireError('{field.name} is too long')")
            self._encode_length(source, depth, kind, f"len({value})")
            source.add(depth, f"out += {value}")

    def _encode_elements(
        self, source: _Source, depth: int, kind: Array, value: str, field: Wire
    ) -> None:
        element = kind.of
        if isinstance(element, Primitive) and element.code is not None:
            source.names["pack"] = struct.pack
            count = f"len({value})"
            source.add(depth, f"out += pack({_format_of_array(element.code, count)}, *{value})")
            return
        if isinstance(element, type):
            encode = source.name(self.encoder(element), "encode")
            source.names["FixedList"] = FixedList
            source.add(depth, f"if type({value}) is FixedList: out += {value}.encoded({encode})")
            source.add(depth, "else:", f"    for element in {value}: {encode}(element, out)")
        else:
            source.add(depth, f"for element in {value}:")
            inner = Wire(field.name, "", element, range(0), range(0), None, None)
            self._encode_value(source, depth + 1, inner, "element")

    def _encode_tags(self, source: _Source, tagged: list[Wire]) -> None:
        if not tagged:
            source.add(1, "out += b'\\0'")
            return
        # Fields with their default value are omitted, as in Kafka.
        source.add(1, "tags = 0", "body = out", "out = bytearray()")
        for field in tagged:
            default = self._default(source, field)
            encode = source.name(self._tag_encoder(field), "tag")
            source.add(
                1,
                f"value = message.{field.name}",
                f"if value != {default}:",
                "    tags += 1",
                f"    data = {encode}(value)",
                f"    out += {encode_varint(field.tag or 0)!r} + encode_varint(len(data)) + data",
            )
        source.add(1, "body += encode_varint(tags) + out")

    def _tag_encoder(self, field: Wire) -> Callable[[Any], bytes]:
        source = _Source("def encode(value):")
        source.add(1, "out = bytearray()")
        if _is_fixed([field]):
            pack = source.name(_format([field]).pack, "pack")
            source.add(1, f"out += {pack}(value)")
        else:
            self._encode_value(source, 1, field, "value")
        source.add(1, "return out")
        encoder: Callable[[Any], bytes] = source.compile("encode")
        return encoder


def _remembering(skip: Skipper) -> Skipper:
    """Return a faster `skip`, which compares the array's bytes with those of the last array."""
    last = -1, b""

    def skip_again(data: bytes, at: int, end: int, count: int) -> int:
        nonlocal last
        known_count, last_data = last
        if count == known_count and data.startswith(last_data, at):
            return at + len(last_data)
        stop = skip(data, at, end, count)
        last = count, data[at:stop]
        return stop

    return skip_again


def _format_of_array(code: str, count: str) -> str:
    """Return the expression of the struct format of `count` elements. "16s" takes no count."""
    return f"'>%d{code}' % {count}" if len(code) == 1 else f"'>' + {count} * '{code}'"


def _sharing(decode: Decoder) -> SharedDecoder:
    """Return a decoder that returns the last array again if the bytes are the same."""
    last = -1, b"", FixedList(())

    def decode_again(data: bytes, at: int, end: int, count: int) -> tuple[FixedList, int]:
        nonlocal last
        known_count, last_data, elements = last
        if count == known_count and data.startswith(last_data, at):
            return elements, at + len(last_data)
        began, decoded = at, []
        for _ in range(count):
            element, at = decode(data, at, end)
            decoded.append(element)
        last = count, data[began:at], FixedList(decoded)
        return last[2], at

    return decode_again


DECODE_ERRORS: Final = (struct.error, IndexError)
ENCODE_ERRORS: Final = (
    struct.error,
    AttributeError,
    TypeError,
    ValueError,  # UnicodeEncodeError is one
    OverflowError,
)
