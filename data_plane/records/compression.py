"""The codecs of record batches: gzip, snappy, lz4 and zstd.

Snappy data has Xerial's framing, which Kafka's clients write, or no framing. Decompression is
bounded, because a batch of a few kilobytes can expand to gigabytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

import cramjam

# The largest size of a decompressed batch; Kafka has no limit (docs/differences.md).
DECOMPRESSED_BYTES_MAX: Final = 100 * 1024 * 1024
_FIRST_BUFFER_BYTES: Final = 64 * 1024
_GROWTH: Final = 8
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_INT: Final = struct.Struct(">i")
_GZIP_WINDOW: Final = 31  # zlib's number for a gzip header and the largest window
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE: Final = 0x08  # flag: the frame's header has eight more bytes
_ZSTD_LEVEL: Final = 3


class Codec(IntEnum):
    """The compression codes of batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(Exception):
    """The compressed bytes are damaged, or expand to more than the limit."""


def decompress(codec: Codec, data: bytes, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the decompressed bytes, if they are at most `limit`; without a codec, `data` itself.

    Raises:
        DecompressionError: the data are damaged, or expand to more than `limit`.
    """
    if codec is Codec.NONE:
        return data
    return _DECOMPRESSORS[codec](data, limit)


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress with the codec's default level."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return zlib.compress(data, wbits=_GZIP_WINDOW)
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            # Kafka's consumers do not read blocks that depend on earlier ones.
            compressor = cramjam.lz4.Compressor(block_linked=False)
            compressor.compress(data)
            return bytes(compressor.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def with_correct_lz4_checksum(data: bytes) -> bytes:
    """Return the frame with its header checksum corrected.

    Clients that write format 0 include the frame's magic in the checksum (KAFKA-3160).
    """
    return _with_lz4_checksum(data, len(_LZ4_MAGIC))


def with_format_0_lz4_checksum(data: bytes) -> bytes:
    """Return the frame with the header checksum that clients of format 0 expect (KAFKA-3160)."""
    return _with_lz4_checksum(data, 0)


def _with_lz4_checksum(data: bytes, start: int) -> bytes:
    """Return the frame with a header checksum that covers the header from `start` on."""
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        return data
    end = 6 + (8 if data[4] & _LZ4_CONTENT_SIZE else 0)
    checksum = (_xxh32_short(data[start:end]) >> 8) & 0xFF
    return data[:end] + bytes([checksum]) + data[end + 1 :]


def _gunzip(data: bytes, limit: int) -> bytes:
    reader = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = reader.decompress(data, limit + 1)
    except zlib.error as error:
        raise DecompressionError(f"gzip: {error}") from error
    if len(content) > limit:
        raise _too_large(limit)
    if not reader.eof:
        raise DecompressionError("gzip: the stream is truncated")
    return content


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit)
    blocks, at, size = [], len(_XERIAL_HEADER), 0
    while at < len(data):
        if at + 4 > len(data):
            raise DecompressionError("snappy: a block is truncated")
        length = _INT.unpack_from(data, at)[0]
        at += 4
        if length < 0 or at + length > len(data):
            raise DecompressionError("snappy: a block is truncated")
        block = _decompress_snappy_block(data[at : at + length], limit - size)
        blocks.append(block)
        size += len(block)
        at += length
    return b"".join(blocks)


def _decompress_snappy_block(data: bytes, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(data) > limit:
            raise _too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"snappy: {error}") from error


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_INT.pack(len(block)), block)
    return b"".join(parts)


def _into_growing_buffer(
    decompress_into: Callable[[bytes, bytearray], int], data: bytes, limit: int
) -> bytes:
    """Retry with larger buffers: the compressed form need not say the size of the content."""
    size = min(limit, max(_FIRST_BUFFER_BYTES, _GROWTH * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            written = decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise DecompressionError(str(error)) from error
            if size == limit:
                raise _too_large(limit) from error
            size = min(limit, _GROWTH * size)
        else:
            return bytes(memoryview(buffer)[:written])


def _unzstd(data: bytes, limit: int) -> bytes:
    return _into_growing_buffer(cramjam.zstd.decompress_into, data, limit)


def _unlz4(data: bytes, limit: int) -> bytes:
    return _into_growing_buffer(cramjam.lz4.decompress_into, data, limit)


def _too_large(limit: int) -> DecompressionError:
    return DecompressionError(f"the records take more than {limit} bytes")


_DECOMPRESSORS: Final[Mapping[Codec, Callable[[bytes, int], bytes]]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}


def _xxh32_short(data: bytes) -> int:
    """Return XXH32 with seed 0 of up to 15 bytes. A header with its magic has at most 14 bytes."""
    prime1, prime2, prime3, prime4, prime5 = (
        0x9E3779B1,
        0x85EBCA77,
        0xC2B2AE3D,
        0x27D4EB2F,
        0x165667B1,
    )
    mask = 0xFFFFFFFF
    value = (prime5 + len(data)) & mask
    at = 0
    while at + 4 <= len(data):
        lane = int.from_bytes(data[at : at + 4], "little")
        value = (value + lane * prime3) & mask
        value = (((value << 17) | (value >> 15)) & mask) * prime4 & mask
        at += 4
    for byte in data[at:]:
        value = (value + byte * prime5) & mask
        value = (((value << 11) | (value >> 21)) & mask) * prime1 & mask
    value = ((value ^ (value >> 15)) * prime2) & mask
    value = ((value ^ (value >> 13)) * prime3) & mask
    return value ^ (value >> 16)
